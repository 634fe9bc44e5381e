/** A place for an SSE connection, taken before the log is touched. SPEC: GW-LIMIT, AUTH-LIMIT, AUTH-LIMIT-ADDRESS. */
import { refuse } from './answer-error.ts';
import type { GatewayContext, SessionRef } from './context.ts';
import { SseStream } from './stream.ts';

/** What a request comes to: the status it was answered with, or a stream that is still to be run. */
export type Outcome = number | SseStream;

/** A stream that `make` returns holds the place until it has run; in every other case it is free again. Refusals: `RATE_LIMITED`, `CAPACITY`. */
export async function inPlace(
  context: GatewayContext,
  { share }: SessionRef,
  make: (leave: () => void) => Promise<Outcome>,
): Promise<Outcome> {
  const leaveShare = context.limits.openStream(share);
  const leavePlace = context.connections.reserve();
  const leave = (): void => {
    leaveShare();
    leavePlace?.();
  };
  if (leavePlace === null) {
    leave();
    return refuse('CAPACITY', 'This gateway holds as many connections as it may');
  }
  let outcome: Outcome | null = null;
  try {
    outcome = await make(leave);
  } finally {
    if (!(outcome instanceof SseStream)) leave();
  }
  return outcome;
}
