/** One session on one child process: newline-delimited JSON-RPC both ways. */
import { settlesWithin } from '@throughline/log';
import type { JsonRpcMessage } from '@throughline/protocol';
import type { ChildGroup, StopLimits } from './child-group.ts';
import { createChildStdin } from './child-stdin.ts';
import type { DiagnosableSession } from './diagnosable.ts';
import { HostError } from './host.ts';
import type { HostCallbacks } from './host.ts';
import type { HostDeps } from './host-deps.ts';
import { createLineFramer } from './line-framer.ts';
import { createLogLimiter } from './log-limiter.ts';
import type { LogLimits } from './log-limiter.ts';
import { parseMessages } from './message-facts.ts';
import { createProgressOwners } from './progress-owners.ts';
import { followStderr } from './stderr-tail.ts';

export interface StdioLimits extends StopLimits {
  /** Bytes of one line of the child at most. Default 16 MiB. */
  readonly maxLineBytes: number;
  /** Bytes that wait for the child to read at most. Default 32 MiB. */
  readonly maxWaitingBytes: number;
  /** Milliseconds that the output of an exited child gets to be read. Default 5000. */
  readonly outputMs: number;
  /** Rate of logged lines of stderr, and of complaints about stdout. Default 20 a second, 100 at once. */
  readonly log: LogLimits;
}

/** Milliseconds that an exit may come after the child closed its stdin or stdout, to tell by what code. */
const EXIT_GRACE_MS = 500;
const MAX_QUOTED_CHARS = 1500;

export function createStdioSession(
  child: ChildGroup,
  callbacks: HostCallbacks,
  deps: HostDeps,
  limits: StdioLimits,
): DiagnosableSession {
  const { clock, logger } = deps;
  const stderr = followStderr(child.process.stderr, logger, clock, limits.log);
  const complaints = createLogLimiter(clock, limits.log);
  const progress = createProgressOwners();
  let isClosed = false;
  let goneReason: string | undefined;

  const diagnose = (): string => {
    const lines = stderr.lastLines();
    return lines.length === 0 ? '' : `its last lines on stderr: ${lines.join(' | ').slice(-MAX_QUOTED_CHARS)}`;
  };

  /** The instance ends by itself, at most once: what waits is failed, what is left of the group is stopped. */
  const goAway = (reason: string): void => {
    if (goneReason !== undefined) return;
    goneReason = reason;
    stdin.fail(new HostError('HOST_GONE', reason));
    void child.stop(limits);
    callbacks.onGone(reason, diagnose());
  };

  const complain = (event: string, fields: Readonly<Record<string, unknown>>): void => {
    if (complaints.take()) logger.warn(event, { ...fields, droppedBefore: complaints.takeDropped() });
  };

  const stdin = createChildStdin(child.process.stdin, {
    maxBytes: limits.maxWaitingBytes,
    onFull() {
      goAway(`the stdio server does not read its input: more than ${String(limits.maxWaitingBytes)} bytes wait`);
    },
    onBroken() {
      void exitWithin(EXIT_GRACE_MS).then((hasExited) => {
        if (!hasExited) goAway('the stdio server closed its input');
      });
    },
  });

  const exitWithin = (ms: number): Promise<boolean> => settlesWithin(clock, child.exited, ms);

  const takeLine = async (line: Buffer): Promise<void> => {
    if (isClosed) return;
    const text = line.toString('utf8');
    if (text.trim() === '') return;
    const messages = parseMessages(text);
    if ('fault' in messages) {
      complain('host.stdout-skipped', { fault: messages.fault, start: text.slice(0, 200) });
      return;
    }
    for (const message of messages) {
      if (goneReason !== undefined) return;
      // Waiting here stops the reading of stdout, and the child feels it: the backpressure.
      await callbacks.onMessage(message, progress.received(message));
    }
  };

  const readOutput = async (): Promise<void> => {
    const framer = createLineFramer(limits.maxLineBytes);
    try {
      for await (const chunk of child.process.stdout as AsyncIterable<Buffer>) {
        const { lines, tooLong } = framer.push(chunk);
        for (const line of lines) await takeLine(line);
        if (tooLong) {
          goAway(`the stdio server wrote a line longer than ${String(limits.maxLineBytes)} bytes`);
          return;
        }
      }
    } catch (error) {
      complain('host.stdout-failed', { error });
    }
  };

  const output = readOutput();
  // An open stdin with a closed stdout is a server that can never answer.
  void output.then(async () => {
    if (!(await exitWithin(EXIT_GRACE_MS))) goAway('the stdio server closed its output');
  });
  void child.exited.then(async ({ code, signal }) => {
    // What the child said before it went comes first; a grandchild may hold the pipe open, hence the bound.
    await settlesWithin(clock, output, limits.outputMs);
    child.process.stdout.destroy();
    await settlesWithin(clock, stderr.ended, EXIT_GRACE_MS);
    goAway(
      signal === null
        ? `the stdio server exited with code ${String(code)}`
        : `the stdio server was killed by ${signal}`,
    );
  });

  return {
    diagnose,
    async deliver(message: JsonRpcMessage) {
      if (isClosed) throw new HostError('HOST_GONE', 'the session is closed');
      progress.sent(message);
      await stdin.write(`${JSON.stringify(message)}\n`);
    },
    async close() {
      isClosed = true;
      stdin.fail(new HostError('HOST_GONE', 'the session is closed'));
      await child.stop(limits);
      child.process.stdout.destroy();
      child.process.stderr.destroy();
    },
  };
}
