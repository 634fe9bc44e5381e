/** What went wrong outside the configuration, in one paragraph that names the way out. */
import { failureText, LogError } from '@throughline/log';
import { HostError } from '@throughline/worker/host';
import type { CommandName } from './command-table.ts';
import { StartError } from './faults.ts';

/** Gives a command with the options that it needs. */
export type Advise = (command: CommandName) => string;

export function describeFailure(error: unknown, advise: Advise): string {
  if (!(error instanceof Error)) return `unexpected failure: ${String(error)}`;
  if (error instanceof LogError) return describeLogFailure(error, advise);
  // These say themselves what to do.
  if (error instanceof HostError) return error.message;
  if (error instanceof StartError) return `${error.message}${causeOf(error)}`;
  switch ('code' in error ? error.code : undefined) {
    // `ListenError` of the gateway, which names the option to change.
    case 'ADDRESS_IN_USE':
    case 'ADDRESS_REFUSED':
    case 'TLS_REFUSED':
      return `${error.message}.`;
    default:
      // A bug or something unforeseen: whoever reads this needs the stack.
      return `unexpected failure: ${error.stack ?? error.message}${causeOf(error)}`;
  }
}

/** What the log says, and the command that puts it right, if there is one. */
export function describeReason(error: LogError, advise: Advise): string {
  return error.details.cure === 'apply-topics' ? `${error.message}; run \`${advise('topics apply')}\`` : error.message;
}

function describeLogFailure(error: LogError, advise: Advise): string {
  const reason = describeReason(error, advise);
  switch (error.code) {
    case 'LOG_INCOMPATIBLE':
    case 'NOT_AUTHENTICATED':
    case 'NOT_AUTHORIZED':
      return `the log cannot be used: ${reason}`;
    case 'LOG_UNAVAILABLE':
      return `the log cannot be opened: ${reason}`;
    case 'APPEND_REFUSED':
      if (error.details.reason === 'not-authenticated' || error.details.reason === 'not-authorized')
        return `the log cannot be used: ${reason}`;
      return `the log takes no records (${error.details.reason ?? 'other'}): ${reason}. Free disk space, raise --max-size or choose another --log.`;
    case 'APPEND_UNKNOWN':
    case 'OFFSET_OUT_OF_RANGE':
    case 'ABORTED':
    case 'CLOSED':
      return `the log failed: ${reason}`;
  }
}

function causeOf(error: Error): string {
  return error.cause instanceof Error ? ` (${failureText(error.cause)})` : '';
}
