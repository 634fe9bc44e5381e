/** The dated result of a deep lane. Parts may have run one by one: each says at which commit. */
import { addUp, formatMinutes, formatTally } from './tally.ts';
import type { PartResult } from './tally.ts';

export interface DeepResult {
  /** YYYY-MM-DD. */
  readonly date: string;
  readonly machine: { readonly cores: number; readonly memoryBytes: number; readonly node: string };
  readonly parts: readonly DeepPart[];
  /** Sections that people wrote below the table, as they stand there. Default: none. */
  readonly sections?: string;
}

export interface DeepPart extends PartResult {
  /** The commit that was tested. */
  readonly commit: string;
}

export function renderDeepResult({ date, machine, parts, sections = '' }: DeepResult): string {
  const ms = parts.reduce((sum, part) => sum + part.ms, 0);
  const rows = parts.map(
    ({ name, commit, ms: spent, passed, failed, skipped, note }) =>
      `| ${name} | ${commit} | ${formatMinutes(spent)} | ${passed} | ${failed} | ${skipped} | ${note ?? ''} |`,
  );
  return [
    `# Deep lane, ${date}`,
    '',
    `- Machine: ${machine.cores} cores, ${(machine.memoryBytes / 1024 ** 3).toFixed(1)} GiB memory, Node ${machine.node}`,
    `- Result: ${formatTally(addUp(parts))}, in ${formatMinutes(ms)} minutes`,
    '',
    '| part | commit | minutes | passed | failed | skipped | note |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
    sections,
  ].join('\n');
}

const ROW =
  /^\| (?<name>\S+) +\| (?<commit>[^|]+?) +\| (?<minutes>[\d.]+) +\| (?<passed>\d+) +\| (?<failed>\d+) +\| (?<skipped>\d+) +\| (?<note>.*?) *\|$/gm;

/** The parts on a page that was written before; none if it is not such a page. */
export function readDeepParts(page: string): DeepPart[] {
  return [...page.matchAll(ROW)].map(({ groups = {} }) => ({
    name: groups['name'] ?? '',
    commit: groups['commit'] ?? '',
    ms: Number(groups['minutes']) * 60_000,
    passed: Number(groups['passed']),
    failed: Number(groups['failed']),
    skipped: Number(groups['skipped']),
    ...(groups['note'] ? { note: groups['note'] } : {}),
  }));
}

/** What people wrote on a page below its table: from the first heading of a section on. */
export function readSections(page: string): string {
  const start = page.indexOf('\n## ');
  return start < 0 ? '' : page.slice(start + 1);
}

/** Those of `before` in the order of the lane, each replaced by what it is `now`. */
export function mergeParts(before: readonly DeepPart[], now: readonly DeepPart[]): DeepPart[] {
  const merged = new Map(before.map((part) => [part.name, part]));
  for (const part of now) merged.set(part.name, part);
  return [...merged.values()];
}
