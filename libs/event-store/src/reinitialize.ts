/** A session that goes on in a fresh transport: it is given what the client said at the beginning. SPEC: EVS-RESTORE. */
import { settleWithin } from '@throughline/log';
import type { Clock } from '@throughline/log';
import type { JsonRpcRequest } from '@throughline/protocol';
import { EventStoreError } from './errors.ts';

/** Hands a request to a transport as if it came over HTTP. */
export type HandleRequest = (request: Request) => Promise<Response>;

/** A server that is there answers at once; one that does not is no server to go on with. */
const ANSWER_MS = 30_000;
const URL = 'http://localhost/mcp';

export interface ReinitializeOptions {
  readonly clock: Clock;
  readonly handle: HandleRequest;
  readonly initialize: JsonRpcRequest | null;
}

export async function reinitialize({ clock, handle, initialize }: ReinitializeOptions): Promise<void> {
  if (initialize === null)
    throw new EventStoreError('RESTORE_REFUSED', 'nobody remembered the initialize request of this session');
  const late = (): Error => new EventStoreError('RESTORE_REFUSED', `no answer to initialize within ${ANSWER_MS} ms`);
  const post = async (
    message: unknown,
    session?: { readonly id: string; readonly version: string },
  ): Promise<Response> => {
    const headers = {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...(session === undefined ? {} : { 'Mcp-Session-Id': session.id, 'MCP-Protocol-Version': session.version }),
    };
    const answer = await handle(new Request(URL, { method: 'POST', headers, body: JSON.stringify(message) }));
    const text = await answer.text();
    if (!answer.ok)
      throw new EventStoreError('RESTORE_REFUSED', `the transport answers ${answer.status}: ${text.slice(0, 500)}`);
    return answer;
  };
  const version = askedVersion(initialize);
  await settleWithin(
    clock,
    ANSWER_MS,
    (async () => {
      const answer = await post(initialize);
      const id = answer.headers.get('Mcp-Session-Id') ?? '';
      await post(INITIALIZED, { id, version });
    })(),
    late,
  );
}

/** The revision that the client asked for; `''` if it names none. */
export function askedVersion(initialize: JsonRpcRequest): string {
  const version = initialize.params?.['protocolVersion'];
  return typeof version === 'string' ? version : '';
}

const INITIALIZED = { jsonrpc: '2.0', method: 'notifications/initialized' } as const;
