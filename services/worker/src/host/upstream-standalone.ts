/**
 * The standalone stream of an upstream session: opened once, kept open for the life of the session, resumed where it
 * broke. Unlike a call nobody waits for it, so it is tried again without end, ever more slowly.
 */
import { sleep } from '@throughline/log';
import { parseMessages } from './message-facts.ts';
import { readSse } from './sse-reader.ts';
import type { SseCursor } from './sse-reader.ts';
import { delayBefore, LOST_REASON, openStream } from './upstream-context.ts';
import type { UpstreamContext } from './upstream-context.ts';

/**
 * Resolves when the upstream offers no such stream, or the session has ended. Never rejects. `onFirstTry` is called when
 * the first attempt is over, whatever came of it.
 */
export async function followStandalone(context: UpstreamContext, onFirstTry: () => void): Promise<void> {
  const { signal, logger, limits } = context;
  const cursor: SseCursor = { lastEventId: undefined, retryMs: undefined };
  for (let failures = 0; ; failures += 1) {
    const opened = await openStream(context, cursor, signal);
    onFirstTry();
    switch (opened.kind) {
      case 'stream': {
        const end = await readSse(opened.body, cursor, {
          maxChars: limits.maxMessageSize,
          silence: { clock: context.clock, ms: limits.silenceMs },
          signal,
          onId(isNew) {
            if (isNew) failures = 0;
          },
          async onData(data) {
            const messages = parseMessages(data);
            if ('fault' in messages) {
              logger.warn('host.upstream-skipped', { fault: messages.fault, start: data.slice(0, 200) });
              return;
            }
            for (const message of messages) await context.forward(message);
          },
        });
        if (end === 'aborted') return;
        if (end === 'too-long') logger.warn('host.upstream-too-long', { maxChars: limits.maxMessageSize });
        break;
      }
      case 'retry':
        if (failures === 0) logger.warn('host.upstream-standalone-broken', { why: opened.why });
        break;
      case 'refused':
        if (cursor.lastEventId === undefined) {
          logger.debug('host.upstream-no-standalone', { status: opened.status });
          return;
        }
        // What was sent meanwhile is lost at the upstream; what comes from now on is not.
        logger.warn('host.upstream-standalone-gap', { why: opened.why });
        cursor.lastEventId = undefined;
        break;
      case 'lost':
        context.lose(LOST_REASON);
        return;
      case 'aborted':
        return;
    }
    if (!(await sleep(context.clock, delayBefore(context, cursor, failures), signal))) return;
  }
}
