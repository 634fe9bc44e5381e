/** The operator's commands. Their own options are in `../command-options.ts`. */

import type { SessionId } from '@throughline/protocol';
import type { DecodedId } from './decode-id.ts';
import type { TailRequest } from './tail.ts';

export const OPERATION_NAMES = [
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
