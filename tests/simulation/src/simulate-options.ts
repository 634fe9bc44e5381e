/** The options of `npm run simulate`: what is wrong is said with what to write instead. Pure. */
import { parseArgs } from 'node:util';
import type { PlanOptions } from './draw-plan.ts';
import { FAULTS } from './faults.ts';
import type { FaultName } from './faults.ts';

export interface SimulateOptions {
  readonly seeds: number;
  readonly from: number;
  /** `null`: one a core. */
  readonly jobs: number | null;
  readonly stop: boolean;
  readonly shrink: boolean;
  readonly plan: PlanOptions;
}

export const USAGE = `Usage: npm run simulate -- [--seeds <count>] [--from <first seed>] [--faults <name,…>] [--stop] [--shrink] [--jobs <count>] [--overrides <JSON>]
  --seeds      how many runs (default 200)
  --from       the first seed (default 1); the others follow it
  --faults     only these faults strike; default: what each seed draws
  --stop       end with the first seed that fails
  --shrink     make a short script of each seed that fails (of the first three), as a case for found-defects.test.ts
  --jobs       processes at once (default: one a core)
  --overrides  fields of the plan, such as '{"gateways":3}'
`;

/** A text is what to tell the person. */
export function readSimulateOptions(args: readonly string[]): SimulateOptions | string {
  let values;
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        seeds: { type: 'string', default: '200' },
        from: { type: 'string', default: '1' },
        jobs: { type: 'string' },
        faults: { type: 'string' },
        overrides: { type: 'string' },
        stop: { type: 'boolean', default: false },
        shrink: { type: 'boolean', default: false },
      },
    }));
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n${USAGE}`;
  }
  const seeds = wholeFrom1(values.seeds);
  if (seeds === null) return wrong('seeds', values.seeds, 'a whole number from 1', '--seeds 1000');
  const from = wholeFrom1(values.from);
  if (from === null) return wrong('from', values.from, 'a whole number from 1', '--from 501');
  const jobs = values.jobs === undefined ? null : wholeFrom1(values.jobs);
  if (values.jobs !== undefined && jobs === null)
    return wrong('jobs', values.jobs, 'a whole number from 1', '--jobs 2');
  const names = values.faults?.split(',') ?? [];
  const unknown = names.filter((name) => !(name in FAULTS));
  if (unknown.length > 0)
    return `--faults names ${unknown.join(', ')}, which is no fault. Known: ${Object.keys(FAULTS).join(', ')}.\n`;
  const overrides = values.overrides === undefined ? {} : jsonObject(values.overrides);
  if (overrides === null)
    return wrong('overrides', values.overrides ?? '', 'a JSON object', `--overrides '{"gateways":3}'`);
  const plan: PlanOptions = {
    ...(values.faults === undefined ? {} : { faults: names as FaultName[] }),
    ...(values.overrides === undefined ? {} : { overrides }),
  };
  return { seeds, from, jobs, stop: values.stop, shrink: values.shrink, plan };
}

function wholeFrom1(text: string): number | null {
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : null;
}

function jsonObject(text: string): NonNullable<PlanOptions['overrides']> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function wrong(option: string, text: string, what: string, such: string): string {
  return `--${option} must be ${what}, such as ${such}; it is ${JSON.stringify(text)}.\n`;
}
