/**
 * What a server may ask of a client: only what the client declared in `initialize`, for the whole session. Pure.
 * SPEC: WRK-DECLARED.
 */
import type { JsonRpcRequest } from '@throughline/protocol';

type Fields = Readonly<Record<string, unknown>>;

export interface Undeclared {
  /** The capability as a path, for people: `elicitation.url`. */
  readonly name: string;
  /** As a client would have to declare it. */
  readonly requiredCapabilities: Fields;
  /** The client takes such requests, but not this use of them. */
  readonly isPart: boolean;
}

/** The capability that each request needs; others need none that MCP names. */
const NEEDED: Readonly<Record<string, (params: Fields) => readonly [string, string?]>> = {
  'roots/list': () => ['roots'],
  'sampling/createMessage': ({ tools, toolChoice }) =>
    tools === undefined && toolChoice === undefined ? ['sampling'] : ['sampling', 'tools'],
  'elicitation/create': ({ mode }) => ['elicitation', mode === 'url' ? 'url' : 'form'],
  'tasks/get': () => ['tasks'],
  'tasks/result': () => ['tasks'],
  'tasks/list': () => ['tasks', 'list'],
  'tasks/cancel': () => ['tasks', 'cancel'],
};

/** What the client lacks for this request; `null`: it may be asked. */
export function undeclaredOf({ method, params }: JsonRpcRequest, capabilities: Fields): Undeclared | null {
  const [kind, part] = Object.hasOwn(NEEDED, method) ? (NEEDED[method]?.(params ?? {}) ?? []) : [];
  if (kind === undefined) return null;
  const isPart = isDeclared(capabilities[kind]);
  if (isPart && (part === undefined || hasPart(kind, part, asFields(capabilities[kind])))) return null;
  return {
    name: part === undefined ? kind : `${kind}.${part}`,
    requiredCapabilities: { [kind]: part === undefined ? {} : { [part]: {} } },
    isPart,
  };
}

/** Elicitation without modes, as before 2025-11-25, means forms. */
function hasPart(kind: string, part: string, declared: Fields): boolean {
  if (isDeclared(declared[part])) return true;
  return kind === 'elicitation' && part === 'form' && !isDeclared(declared['url']);
}

function isDeclared(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false;
}

function asFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}
