/** What a process of the product holds now, by its own metrics and by the system. */
import { readdirSync } from 'node:fs';
import type { ThroughlineProcess } from '@throughline/testkit/processes';
import { collectGarbage, exchange } from '@throughline/testkit/processes';
import type { Sample } from './flatness.ts';

const HEAD_MS = 2000;

/** Of a process started with `COLLECTING`: its garbage is collected first. Null while it does not answer: it may stand still. */
export async function sampleProcess({ pid, adminUrl }: ThroughlineProcess): Promise<Sample | null> {
  try {
    collectGarbage(pid);
    const answer = await exchange(`${adminUrl}/metrics`, { method: 'GET', headMs: HEAD_MS });
    const text = await answer.text();
    const read = (name: string): number => {
      const value = new RegExp(`^${name}(?:\\{[^}]*\\})? (?<value>\\S+)$`, 'm').exec(text)?.groups?.['value'];
      if (value === undefined) throw new RangeError(`no metric ${name}`);
      return Number(value);
    };
    return {
      heapBytes: read('nodejs_heap_size_used_bytes'),
      externalBytes: read('nodejs_external_memory_bytes'),
      rssBytes: read('process_resident_memory_bytes'),
      handles: read('nodejs_active_handles_total'),
      descriptors: readdirSync(`/proc/${pid}/fd`).length,
    };
  } catch (error) {
    if (error instanceof RangeError) throw error;
    return null;
  }
}
