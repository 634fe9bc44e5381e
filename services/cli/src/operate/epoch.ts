/** `throughline epoch show | rotate`. */
import { sleep, systemRandom } from '@throughline/log';
import type { Epoch } from '@throughline/protocol';
import type { Meta } from '@throughline/tail';
import type { Settings } from '../settings.ts';
import { readMetaFacts } from './meta-facts.ts';
import type { EpochEntry, MetaFacts } from './meta-facts.ts';
import { withLog, withMeta } from './open-operator-log.ts';
import type { OperatorProcess } from './operator-process.ts';
import { renderJson, renderTable } from './table.ts';
import { formatAge, formatTime } from './time-text.ts';

export async function runEpochShow(json: boolean, settings: Settings, self: OperatorProcess): Promise<number> {
  return await withLog(settings, self, async (log) => {
    const facts = await readMetaFacts(log, self.signal);
    const { clusterId } = log.description;
    self.out(json ? renderJson(epochJson(facts, clusterId)) : renderEpochs(facts, clusterId, self.clock.wallMs()));
    return 0;
  });
}

function epochJson({ epochs, inForce, marks }: MetaFacts, clusterId: string): object {
  return { clusterId, inForce, epochs, marks: Object.fromEntries(marks) };
}

export function renderEpochs({ epochs, inForce, marks }: MetaFacts, clusterId: string, nowMs: number): string {
  const rows = epochs.map(({ token, verdict, atMs, previous, reason, offset }) => [
    token,
    verdict,
    formatTime(atMs),
    previous ?? '-',
    String(offset),
    reason,
  ]);
  const head =
    inForce === null
      ? 'There is no epoch yet: the first gateway or worker makes one.\n'
      : `In force: ${inForce.token}, for ${formatAge(nowMs - inForce.atMs)}, because: ${inForce.reason}\n`;
  const table =
    rows.length === 0 ? '' : renderTable(['EPOCH', 'STATE', 'SINCE', 'AFTER', 'OFFSET IN META', 'REASON'], rows);
  const own = [...marks].filter(([name]) => inForce !== null && name.startsWith(`${inForce.token}/`));
  const marked =
    own.length === 0
      ? ''
      : renderTable(
          ['TOPIC AND PARTITION', 'MARK'],
          own.map(([name, value]) => [name.slice(name.indexOf('/') + 1), value]),
        );
  return `Log: ${clusterId}\n${head}${table}${marked}`;
}

const IN_FORCE_MS = 15_000;

/** 0: the new epoch is in force. 1: not asked for with `--yes`, or another one was first. */
export async function runEpochRotate(
  { reason, isConfirmed, json }: { readonly reason: string; readonly isConfirmed: boolean; readonly json: boolean },
  settings: Settings,
  self: OperatorProcess,
): Promise<number> {
  return await withLog(settings, self, (log) =>
    withMeta(log, self, async (meta) => {
      const before = meta.epoch();
      if (before === null) {
        self.err('throughline: there is no epoch yet to follow; the first gateway or worker makes one.\n');
        return 1;
      }
      if (!isConfirmed) {
        self.err(
          `throughline: this would end the epoch ${before} and every session on ${log.description.clusterId}: ` +
            'clients get ResumptionRejected (epoch-mismatch) and have to initialize again. Nothing was done; to do it, add --yes.\n',
        );
        return 1;
      }
      const token = await meta.proposeEpoch(systemRandom, before, reason);
      const inForce = await untilAnother(meta, before, self);
      const after = (await readMetaFacts(log, self.signal)).epochs.find(({ token: each }) => each === token);
      const isOurs = after !== undefined && (after.verdict === 'in-force' || after.verdict === 'former');
      if (json) self.out(renderJson({ rotated: isOurs, previous: before, epoch: inForce, proposed: token, reason }));
      else self.out(renderRotation(isOurs, before, inForce, after));
      return isOurs ? 0 : 1;
    }),
  );
}

function renderRotation(isOurs: boolean, before: Epoch, inForce: Epoch | null, ours: EpochEntry | undefined): string {
  if (isOurs) return `The epoch is now ${ours?.token ?? ''}; ${before} has ended, and with it every session.\n`;
  return `Another process rotated first: the epoch is now ${inForce ?? 'unknown'}. This proposal has no effect.\n`;
}

/** The epoch that follows `before`, whoever proposed it; null when it does not come in time. */
async function untilAnother(meta: Meta, before: Epoch, self: OperatorProcess): Promise<Epoch | null> {
  const untilMs = self.clock.monoMs() + IN_FORCE_MS;
  while (!self.signal.aborted && self.clock.monoMs() < untilMs) {
    await meta.sync(AbortSignal.any([self.signal, AbortSignal.timeout(IN_FORCE_MS)]));
    if (meta.epoch() !== before) return meta.epoch();
    await sleep(self.clock, 100, self.signal);
  }
  return null;
}
