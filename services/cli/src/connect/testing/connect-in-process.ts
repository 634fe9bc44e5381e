/** `throughline connect` without a process of its own: for tests of many at once. */
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { waitUntil } from '@throughline/testkit/processes';
import { parseArguments } from '../../parse-arguments.ts';
import { completeConnect } from '../complete-connect.ts';
import { connect } from '../connect.ts';

export interface HeardMessage {
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string; readonly data?: unknown };
}

export interface InProcessConnect {
  readonly messages: readonly HeardMessage[];
  stderr(): string;
  /** A line of stdin. */
  type(message: object): void;
  answer(id: string | number): Promise<HeardMessage>;
  /** Closes stdin; the exit code. */
  close(): Promise<number>;
}

const LONG_MS = 90_000;

export function connectInProcess(url: string, args: readonly string[], cwd: string): InProcessConnect {
  const { command, faults } = parseArguments(['connect', url, ...args]);
  if (command.name !== 'connect') throw new Error(JSON.stringify(faults));
  const [input, output] = [new PassThrough(), new PassThrough()];
  const messages: HeardMessage[] = [];
  createInterface({ input: output }).on('line', (line) => messages.push(JSON.parse(line) as HeardMessage));
  let stderr = '';
  const ended = connect(completeConnect(command.line, { environment: {}, cwd }), {
    input,
    output,
    err: (text) => void (stderr += text),
    onSignals: () => () => undefined,
    exit: () => undefined,
    isInteractive: false,
  });
  return {
    messages,
    stderr: () => stderr,
    type: (message) => void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    answer: (id) =>
      waitUntil(
        `the answer to ${id}`,
        () => messages.find((each) => each.id === id && each.method === undefined),
        LONG_MS,
      ),
    async close() {
      input.end();
      return await ended;
    },
  };
}
