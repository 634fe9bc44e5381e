/** A lane from its options to its last line: some or all of its parts, one after the other. */
import process from 'node:process';
import type { ImageVariable } from '../docker/images.ts';
import { optionsOrExit } from '../options/read-options.ts';
import { chooseParts, partOptions } from './choose-parts.ts';
import { prepareContainers } from './containers.ts';
import type { Part } from './parts.ts';
import { runParts } from './parts.ts';
import { addUp, exitCodeOf, formatParts, formatTally } from './tally.ts';
import type { PartResult } from './tally.ts';

export interface Lane {
  /** As a person writes it, and what it does: for `--help`. */
  readonly command: string;
  readonly does: string;
  /** That its parts use, where containers are asked for. */
  readonly images: readonly ImageVariable[];
  readonly partDeadlineMs: number;
  readonly environment: Readonly<Record<string, string>>;
  onResults?(results: readonly PartResult[]): Promise<void>;
}

/** Ends with the exit code of the process set: 0, 1 if anything failed, 2 for wrong options. */
export async function runLane(parts: readonly Part[], lane: Lane): Promise<void> {
  const { command, does } = lane;
  const { only } = optionsOrExit({ command, does, options: partOptions(parts) }, process.argv.slice(2));
  const chosen = chooseParts(parts, only);
  const containers = await prepareContainers(lane.images);
  const environment = { ...lane.environment, ...containers.environment };
  const ran = await runParts(chosen, { partDeadlineMs: lane.partDeadlineMs, environment });
  await containers.stop();
  const results = [...containers.results, ...ran];
  await lane.onResults?.(results);
  process.stdout.write(`\n${formatParts(results)}\n\n${formatTally(addUp(results))}\n`);
  process.exitCode = exitCodeOf(results);
}
