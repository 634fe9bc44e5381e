/** What the processes said, when a test that used them has failed. */
import process from 'node:process';
import { onTestFailed } from 'vitest';

const SHOWN = 12_000;

export function showLogsOnFailure(source: { logs(): string }): void {
  onTestFailed(() => {
    process.stderr.write(`${source.logs().slice(-SHOWN)}\n`);
  });
}
