/** The operator's commands and the options that they alone have. Those that they share with the roles are in `option-table.ts`. */

import type { SessionId } from '@throughline/protocol';
import type { DecodedId } from './decode-id.ts';
import type { TailRequest } from './tail.ts';

const OPERATION_NAMES = [
  'topics apply',
  'topics show',
  'topics diff',
  'doctor',
  'inspect',
  'tail',
  'owners',
  'epoch show',
  'epoch rotate',
] as const;

export type OperationName = (typeof OPERATION_NAMES)[number];

export function isOperationName(text: string): text is OperationName {
  return OPERATION_NAMES.some((name) => name === text);
}

export type Operation =
  | { readonly kind: 'topics'; readonly action: 'apply' | 'show' | 'diff'; readonly json: boolean }
  | { readonly kind: 'doctor'; readonly json: boolean }
  | { readonly kind: 'inspect'; readonly inspected: Inspected }
  | { readonly kind: 'tail'; readonly request: TailRequest }
  | { readonly kind: 'owners'; readonly json: boolean }
  | { readonly kind: 'epoch-show'; readonly json: boolean }
  | { readonly kind: 'epoch-rotate'; readonly reason: string; readonly isConfirmed: boolean; readonly json: boolean };

/** An id to look into. */
export interface Inspected {
  readonly text: string;
  readonly decoded: Exclude<DecodedId, { readonly kind: 'malformed' }>;
  /** The session that an event id is said to belong to. */
  readonly session: { readonly text: string; readonly id: SessionId } | null;
  /** Values are shown: they are what clients and servers say. */
  readonly payload: boolean;
  readonly json: boolean;
}

export interface CommandOption {
  /** What stands for the value in help; switches have none. */
  readonly placeholder?: string;
  readonly help: string;
  readonly commands: readonly OperationName[];
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
} as const satisfies Record<string, CommandOption>;

export type CommandOptionName = keyof typeof COMMAND_OPTIONS;

export const COMMAND_OPTION_NAMES = Object.keys(COMMAND_OPTIONS) as readonly CommandOptionName[];

export function isCommandOption(text: string): text is CommandOptionName {
  return Object.hasOwn(COMMAND_OPTIONS, text);
}

export function commandOption(name: CommandOptionName): CommandOption {
  return COMMAND_OPTIONS[name];
}
