/** Options that single commands alone have. Those of the configuration are in `option-table.ts`. */
import type { Fault } from './faults.ts';
import { OPERATION_NAMES } from './operate/operations.ts';
import type { OperationName } from './operate/operations.ts';

export interface CommandOption {
  /** What stands for the value in help; switches have none. */
  readonly placeholder?: string;
  readonly help: string;
  readonly commands: readonly (OperationName | 'connect')[];
  /** May be given more than once. */
  readonly isList?: true;
}

const COMMAND_OPTIONS = {
  json: {
    help: 'The answer as JSON, for programs.',
    commands: OPERATION_NAMES,
  },
  session: {
    placeholder: 'id',
    help: 'A session id, as Mcp-Session-Id has it: whether the event id is its own; only its records.',
    commands: ['inspect', 'tail'],
  },
  topic: {
    placeholder: 'topic',
    help: 'inbound, events, sessions, meta or dead-letter. Default: events.',
    commands: ['tail'],
  },
  partition: {
    placeholder: 'number',
    help: 'Only this partition. Default: all, or that of --session.',
    commands: ['tail'],
  },
  from: {
    placeholder: 'start|end|offset',
    help: 'Where to begin. Default: end. An offset needs --partition or --session.',
    commands: ['tail'],
  },
  count: {
    placeholder: 'number',
    help: 'Ends after so many records.',
    commands: ['tail'],
  },
  once: {
    help: 'Ends at what is the end now.',
    commands: ['tail'],
  },
  payload: {
    help: 'Shows what clients and servers say. Without, only keys, headers and sizes.',
    commands: ['inspect', 'tail'],
  },
  reason: {
    placeholder: 'text',
    help: 'Why the epoch is rotated; it stays in the log.',
    commands: ['epoch rotate'],
  },
  yes: {
    help: 'Does it. Without, the command says what it would do, and does nothing.',
    commands: ['epoch rotate'],
  },
  place: {
    placeholder: 'name',
    help: 'Tells apart clients of one machine that use the same URL: each needs a place of its own. Default: the working directory.',
    commands: ['connect'],
  },
  'state-folder': {
    placeholder: 'folder',
    help: 'Where places are kept. Default: ~/.local/state/throughline/connect, on Windows %LOCALAPPDATA%\\throughline\\connect.',
    commands: ['connect'],
  },
  'on-close': {
    placeholder: 'end|keep',
    help: 'What becomes of the session when the client closes stdin. Default: end. A process that is killed always leaves it.',
    commands: ['connect'],
  },
  fresh: {
    help: 'Ends a session that was left behind, and begins a new one.',
    commands: ['connect'],
  },
  policy: {
    placeholder: 'strict|compatible',
    help: 'What is taken after a reconnect: only what is proved, or all that nothing speaks against. Throughline proves all of it. Default: strict.',
    commands: ['connect'],
  },
  'give-up': {
    placeholder: 'duration',
    help: 'The server may be out of reach for so long before a call fails. Default: 2m.',
    commands: ['connect'],
  },
  'start-within': {
    placeholder: 'duration',
    help: 'Until `initialize` is answered; after that, exit code 3. Default: 50s.',
    commands: ['connect'],
  },
  linger: {
    placeholder: 'duration',
    help: 'Answers that are due when the client closes stdin are waited for so long. Default: 1s.',
    commands: ['connect'],
  },
  'token-file': {
    placeholder: 'file',
    help: 'A bearer token; read again when the server refuses it.',
    commands: ['connect'],
  },
  header: {
    placeholder: '"Name: value"',
    help: 'Sent with each request; may be given more than once. ${NAME} stands for an environment variable, so that no secret need stand on the command line.',
    commands: ['connect'],
    isList: true,
  },
  login: {
    placeholder: 'ask|now|never',
    help: 'What to do when the server wants a login (OAuth). ask: the address is written to stderr, and waited for. now: logs in and ends; later starts use it. never: nobody is asked. Default: ask.',
    commands: ['connect'],
  },
  'login-within': {
    placeholder: 'duration',
    help: 'A person may take so long to log in; after that, exit code 4. Default: 5m.',
    commands: ['connect'],
  },
  open: {
    help: 'Opens the address of a login in the browser as well.',
    commands: ['connect'],
  },
  'client-id': {
    placeholder: 'id|https-url',
    help: 'The client that is registered at the authorization server, or the URL of a client metadata document. Default: one is registered by itself.',
    commands: ['connect'],
  },
  'client-secret-file': {
    placeholder: 'file',
    help: 'The secret of --client-id, where it has one.',
    commands: ['connect'],
  },
  scope: {
    placeholder: '"scopes"',
    help: 'What a login asks for. Default: what the server says.',
    commands: ['connect'],
  },
  'redirect-port': {
    placeholder: 'port',
    help: 'Where the browser is sent back to, on 127.0.0.1. Default: one that is free; the next login uses it again.',
    commands: ['connect'],
  },
  'allow-http': {
    help: 'Sends credentials to another machine without TLS.',
    commands: ['connect'],
  },
} as const satisfies Record<string, CommandOption>;

export type CommandOptionName = keyof typeof COMMAND_OPTIONS;

export const COMMAND_OPTION_NAMES = Object.keys(COMMAND_OPTIONS) as readonly CommandOptionName[];

export function isCommandOption(text: string): text is CommandOptionName {
  return Object.hasOwn(COMMAND_OPTIONS, text);
}

export function commandOption(name: CommandOptionName): CommandOption {
  return COMMAND_OPTIONS[name];
}

/** Those that this command has; most have none. */
export function optionsOf(command: string): readonly CommandOptionName[] {
  return COMMAND_OPTION_NAMES.filter((name) => commandOption(name).commands.some((each) => each === command));
}

/** Adds a fault for each option that is none of this command. */
export function refuseForeign(
  command: OperationName | 'connect',
  options: ReadonlyMap<CommandOptionName, string>,
  faults: Fault[],
): void {
  for (const option of options.keys()) {
    const { commands } = commandOption(option);
    if (!commands.includes(command))
      faults.push({ where: `--${option}`, problem: `is an option of ${commands.join(', ')}, not of ${command}.` });
  }
}
