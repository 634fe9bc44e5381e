/** Files that change while a process runs: looked at every 10 s, or when asked. SPEC: GW-TLS, CLI-REREAD. */
import { errorText } from '@throughline/log';
import type { Clock } from '@throughline/log';
import type { LogFields, Logger } from '@throughline/telemetry';

/** Milliseconds between two looks. */
const LOOK_MS = 10_000;

export interface Followed<T> {
  /** What was used before the first look. */
  readonly first: T;
  /** What the files hold now. Rejects with why it cannot be used; the message holds no secret. */
  read(): Promise<T>;
  isSame(one: T, other: T): boolean;
  use(value: T): void;
  /** Names of events: what was read anew is used, or cannot be and what was read before goes on. */
  readonly events: { readonly renewed: string; readonly refused: string };
  readonly fields?: LogFields;
}

export interface Following {
  /** Looks now, and resolves when that is done. Never rejects. */
  look(): Promise<void>;
  stop(): void;
}

/** Has what is in the files used within 10 s of a change. What cannot be used changes nothing, and is said once. */
export function followFiles<T>(
  { first, read, isSame, use, events, fields = {} }: Followed<T>,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Following {
  let used = first;
  let failure: string | null = null;
  let isStopped = false;
  const lookOnce = async (): Promise<void> => {
    try {
      const value = await read();
      failure = null;
      if (isStopped || isSame(value, used)) return;
      use(value);
      used = value;
      logger.info(events.renewed, fields);
    } catch (error) {
      // Said once, not every 10 s.
      if (failure !== errorText(error)) logger.warn(events.refused, { ...fields, error: errorText(error) });
      failure = errorText(error);
    }
  };
  let looking = Promise.resolve();
  const look = (): Promise<void> => {
    looking = looking.then(lookOnce);
    return looking;
  };
  const lookLater = (): (() => void) =>
    clock.setTimer(LOOK_MS, () => {
      void look().finally(() => {
        if (!isStopped) cancel = lookLater();
      });
    });
  let cancel = lookLater();
  return {
    look,
    stop() {
      isStopped = true;
      cancel();
    },
  };
}
