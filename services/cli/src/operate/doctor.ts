/** `throughline doctor`: gathers, diagnoses, prints. */
import type { Settings } from '../settings.ts';
import { suggestCommand } from '../suggest-command.ts';
import { diagnose } from './diagnose.ts';
import type { Promises } from './diagnosed.ts';
import { DOCTOR_CHECKS } from './doctor-codes.ts';
import type { Finding } from './doctor-codes.ts';
import { gatherFacts } from './doctor-facts.ts';
import type { OperatorProcess } from './operator-process.ts';
import { renderJson } from './table.ts';

/** Where `--lease` is not set. */
const KAFKA_LEASE_MS = 8000;

/** 0: nothing failed. 1: something did. */
export async function runDoctor(json: boolean, settings: Settings, self: OperatorProcess): Promise<number> {
  const findings = diagnose(await gatherFacts(settings, self), promisesOf(settings));
  self.out(json ? renderJson({ findings: findings.map(withWhy) }) : renderFindings(findings));
  return findings.some(({ level }) => level === 'fail') ? 1 : 0;
}

function promisesOf(settings: Settings): Promises {
  const { log, gateway } = settings;
  const { location, kafka, retentionMs, leaseMs } = log;
  return {
    windowMs: retentionMs,
    maxBodyBytes: gateway.maxBodyBytes,
    leaseMs: leaseMs ?? KAFKA_LEASE_MS,
    brokers: location.kind === 'kafka' ? location.brokers : [],
    prefix: kafka.prefix,
    cli: (name, own) => suggestCommand(settings, name, own),
  };
}

function withWhy(finding: Finding): object {
  const { code, level, what, fix } = finding;
  return { code, level, what, why: DOCTOR_CHECKS[code].why, fix };
}

const SIGNS = { ok: 'ok     ', warn: 'WARN   ', fail: 'FAIL   ', unknown: 'unknown' } as const;

/** One line a finding; why and fix below those that are not ok. */
export function renderFindings(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ code }) => code.length));
  const indent = ' '.repeat(SIGNS.ok.length + width + 4);
  const lines = findings.flatMap(({ code, level, what, fix }) => [
    `${SIGNS[level]}  ${code.padEnd(width)}  ${what}`,
    ...(level === 'ok' ? [] : [`${indent}${DOCTOR_CHECKS[code].why}`]),
    ...(fix === null ? [] : [`${indent}fix: ${fix}`]),
  ]);
  const count = (wanted: Finding['level']): number => findings.filter(({ level }) => level === wanted).length;
  return `${lines.join('\n')}\n${count('ok')} ok, ${count('warn')} warn, ${count('fail')} fail, ${count('unknown')} unknown\n`;
}
