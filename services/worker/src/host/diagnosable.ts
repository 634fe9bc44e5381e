/** A session that can say what is known about its instance, for the message of an error. */
import type { HostSession } from './host.ts';

export interface DiagnosableSession extends HostSession {
  /** For example the last lines of a child's stderr; '' if nothing is known. */
  diagnose(): string;
}

export function diagnose(session: HostSession): string {
  return 'diagnose' in session ? (session as DiagnosableSession).diagnose() : '';
}
