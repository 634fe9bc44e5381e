/** The dated result of a deep lane. */
import { addUp, formatMinutes, formatTally } from './tally.ts';
import type { PartResult } from './tally.ts';

export interface DeepResult {
  /** YYYY-MM-DD. */
  readonly date: string;
  readonly commit: string;
  readonly machine: { readonly cores: number; readonly memoryBytes: number; readonly node: string };
  readonly results: readonly PartResult[];
}

export function renderDeepResult({ date, commit, machine, results }: DeepResult): string {
  const total = addUp(results);
  const ms = results.reduce((sum, part) => sum + part.ms, 0);
  const rows = results.map(
    ({ name, ms: spent, passed, failed, skipped, note }) =>
      `| ${name} | ${formatMinutes(spent)} | ${passed} | ${failed} | ${skipped} | ${note ?? ''} |`,
  );
  return [
    `# Deep lane, ${date}`,
    '',
    `- Commit: ${commit}`,
    `- Machine: ${machine.cores} cores, ${(machine.memoryBytes / 1024 ** 3).toFixed(1)} GiB memory, Node ${machine.node}`,
    `- Result: ${formatTally(total)}, in ${formatMinutes(ms)} minutes`,
    '',
    '| part | minutes | passed | failed | skipped | note |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}
