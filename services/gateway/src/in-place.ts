/** A place for an SSE connection, taken before the log is touched. SPEC: GW-LIMIT, AUTH-LIMIT, AUTH-LIMIT-TAKEOVER, AUTH-LIMIT-ADDRESS. */
import { formatTarget, STANDALONE } from '@throughline/protocol';
import type { StreamTarget } from '@throughline/protocol';
import { refuse } from './answer-error.ts';
import type { GatewayContext, SessionRef } from './context.ts';
import { SseStream } from './stream.ts';

/** What a request comes to: the status it was answered with, or a stream that is still to be run. */
export type Outcome = number | SseStream;

export interface Place {
  /** Says which stream is answered, for one that has its name only once its request is in the log. */
  isOf(stream: StreamTarget): void;
  /** Idempotent. */
  leave(): void;
}

/**
 * A stream that `make` returns holds the place until it has run; in every other case it is free again. Refusals:
 * `RATE_LIMITED`, `CAPACITY`.
 * @param stream the one that is asked for; `null`: not known yet.
 */
export async function inPlace(
  context: GatewayContext,
  { share, id }: SessionRef,
  stream: StreamTarget | null,
  make: (place: Place) => Promise<Outcome>,
): Promise<Outcome> {
  const nameOf = (target: StreamTarget): string =>
    `${id.key} ${isStandalone(target) ? STANDALONE : formatTarget(target)}`;
  const ofShare = context.limits.openStream(share, stream === null ? null : nameOf(stream));
  const leavePlace = context.connections.reserve();
  const leave = (): void => {
    ofShare.leave();
    leavePlace?.();
  };
  if (leavePlace === null) {
    leave();
    return refuse('CAPACITY', 'This gateway holds as many connections as it may');
  }
  let outcome: Outcome | null = null;
  try {
    outcome = await make({
      isOf: (known) => {
        ofShare.isOf(nameOf(known));
      },
      leave,
    });
  } finally {
    if (!(outcome instanceof SseStream)) leave();
  }
  return outcome;
}

/** A session has one, wherever it began: who attaches to it takes it over. */
function isStandalone(target: StreamTarget): boolean {
  return target === STANDALONE || target.kind === 'standalone';
}
