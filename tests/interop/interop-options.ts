/** The options of `npm run interop`. Pure. */
import { flag, names, text } from '../../infra/options/option.ts';
import type { CommandLine } from '../../infra/options/read-options.ts';
import { CLIENTS } from './clients/index.ts';

const LOGS = ['kafka', 'embedded'] as const;

const OPTIONS = {
  log: names('<log>', 'that the gateways share (default kafka)', LOGS),
  client: names(
    '<name>,…',
    'only these clients (default: all)',
    CLIENTS.map(({ name }) => name),
  ),
  report: text('<file>', 'write what was seen as JSON', null),
  write: flag('write docs/reference/interop.md'),
};

export const INTEROP: CommandLine<typeof OPTIONS> = {
  command: 'npm run interop',
  does:
    'Seven real clients through two gateways behind HAProxy, with kills in mid-call, and one table of what was seen.\n' +
    'Clients that cannot be had on this machine are skipped, counted and named. Exit code 1 if a promise was broken.',
  options: OPTIONS,
};
