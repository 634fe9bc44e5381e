/**
 * Begins a session in place of a lost one: the same `initialize`, then what was subscribed to. SPEC: CLIENT-REINIT.
 */
import { TransportError } from './client-errors.ts';
import type { RestoredSession } from './options.ts';
import { Session } from './session.ts';
import type { SessionOwner } from './session.ts';

export interface Restoring {
  readonly owner: SessionOwner;
  readonly lost: Session;
  /** Revisions that the application speaks; `null`: it did not say. */
  readonly versions: readonly string[] | null;
  /** Told before anything is sent, so that whoever rejects the candidate can be heard. */
  onCandidate(session: Session): void;
}

/** Rejects with a `TransportError` if no new session could be had. */
export async function restoreSession(restoring: Restoring): Promise<readonly [Session, RestoredSession]> {
  const { owner, lost, versions } = restoring;
  const number = lost.number + 1;
  const session = new Session(owner, number, { ...lost.initialize, id: `initialize-${number}` });
  restoring.onCandidate(session);
  const { error } = await session.ask(session.initialize);
  const { result } = session;
  if (error !== undefined || result === null)
    throw new TransportError('NO_ANSWER', `No new session: ${error?.message ?? 'initialize has no result'}`);
  const version = String(result['protocolVersion']);
  if (versions !== null && !versions.includes(version))
    throw new TransportError('NOT_MCP', `The server now speaks MCP ${version}, which this client does not`);
  await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const notRestored: RestoredSession['notRestored'][number][] = [];
  for (const [index, { method, params = {} }] of lost.subscriptions.entries()) {
    const asked = await session.ask({ jsonrpc: '2.0', id: `again-${number}-${index}`, method, params });
    if (asked.error === undefined) continue;
    const uri = params['uri'];
    const { message } = asked.error;
    notRestored.push(typeof uri === 'string' ? { method, uri, message } : { method, message });
  }
  return [session, { sessionId: session.sessionId, initializeResult: result, notRestored }];
}

const LISTS = { tools: 'tools', prompts: 'prompts', resources: 'resources' } as const;

/** What may have changed unseen between two sessions, as the notifications that an application knows. */
export function missedChanges(session: Session): { readonly method: string; readonly params?: { uri: string } }[] {
  const capabilities = (session.result?.['capabilities'] ?? {}) as Readonly<
    Record<string, { readonly listChanged?: unknown } | undefined>
  >;
  const lists = Object.values(LISTS)
    .filter((name) => capabilities[name]?.listChanged === true)
    .map((name) => ({ method: `notifications/${name}/list_changed` }));
  const updates = session.subscriptions
    .map(({ params }) => params?.['uri'])
    .filter((uri) => typeof uri === 'string')
    .map((uri) => ({ method: 'notifications/resources/updated', params: { uri } }));
  return [...lists, ...updates];
}
