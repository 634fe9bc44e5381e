/**
 * What the server says: answers end their calls, notifications and requests go where the client hears them. Request ids
 * are namespaced; what belongs to nothing is dropped and counted, and what the client cannot do is not asked.
 * SPEC: WRK-NAMESPACE, WRK-SETTLE, WRK-FLOOD, WRK-DECLARED.
 */
import { errorText } from '@throughline/log';
import { classifyMessage, STANDALONE, wireError } from '@throughline/protocol';
import type {
  EventRecord,
  JsonRpcId,
  JsonRpcMessage,
  JsonRpcNotification,
  JsonRpcRequest,
  JsonRpcResponse,
} from '@throughline/protocol';
import { wireRequestId } from '../settle/server-request-ids.ts';
import type { ClientCalls } from './client-calls.ts';
import type { HostedSession } from './hosted-session.ts';
import { idKey } from './open-call.ts';
import type { OpenCall } from './open-call.ts';
import { knownAs, RepeatedWords } from './repeated-words.ts';
import type { SessionLife } from './session-life.ts';
import type { SessionRecords } from './session-records.ts';
import { drop } from './tenure-parts.ts';
import type { TenureParts } from './tenure-parts.ts';
import { undeclaredOf } from './undeclared.ts';
import type { Undeclared } from './undeclared.ts';

/** Bytes that a session may have waiting for the log: a server that does not heed backpressure is ended there. */
const FLOOD_BYTES = 32 * 1024 * 1024;
/** Requests of one server that its client has not answered. */
const MAX_OUTGOING = 1000;

/** The call that a message belongs to; that of one which is settled has no place any more. */
type Speaker = OpenCall | 'unknown' | 'over';

export interface ServerMessagesOptions {
  readonly parts: TenureParts;
  readonly calls: ClientCalls;
  readonly life: SessionLife;
  readonly records: SessionRecords;
  /** Hands a message to the server; failures are counted. */
  pass(session: HostedSession, message: JsonRpcMessage): void;
}

export class ServerMessages {
  readonly #options: ServerMessagesOptions;
  readonly #parts: TenureParts;
  readonly #repeated: RepeatedWords;

  constructor(options: ServerMessagesOptions) {
    this.#options = options;
    this.#parts = options.parts;
    this.#repeated = new RepeatedWords(options);
  }

  /** Takes a message; resolves when there is room for more. Never rejects. */
  async take(session: HostedSession, message: JsonRpcMessage, related: JsonRpcId | undefined): Promise<void> {
    const { over, context } = this.#parts;
    const { shares } = context;
    if (over.aborted || session.ended) return;
    const classified = classifyMessage(message);
    if ('fault' in classified) {
      drop(this.#parts, 'server-spoke-no-json-rpc');
      return;
    }
    if (shares.of(session.key) > FLOOD_BYTES) {
      this.#flooded(session);
      return;
    }
    const call = related === undefined ? undefined : session.calls.get(idKey(related));
    const speaker = call ?? (related === undefined ? 'unknown' : 'over');
    if (classified.kind === 'response') await this.#answer(session, classified.message);
    else if (classified.kind === 'notification') this.#notify(session, classified.message, speaker);
    else this.#ask(session, classified.message, speaker);
    await shares.room(session.key);
  }

  closeStream(session: HostedSession, related: JsonRpcId): void {
    const { settler } = this.#parts;
    const call = session.calls.get(idKey(related));
    if (call === undefined && related === 'standalone') settler.closeStream(session.key, STANDALONE);
    else if (call?.state === 'running' && call.canPoll && call.batch === null)
      settler.closeStream(session.key, call.stream);
  }

  /** `false`: it is larger than a record may be, and was not written. */
  say(session: HostedSession, call: OpenCall | null, json: string, among: readonly OpenCall[] = []): boolean {
    const { settler, context } = this.#parts;
    const offsets = among.map(({ at }) => at);
    if (call !== null && call.state !== 'done') return settler.send(call, json, offsets);
    session.lastStandaloneMs = context.clock.monoMs();
    return settler.sendStandalone(session.key, json, offsets);
  }

  /** A client listens on a new standalone stream. */
  listening({ key }: EventRecord): void {
    const session = this.#parts.sessions.get(key);
    if (session === undefined) return;
    if (session.standaloneSeen) session.mayHaveMissed = true;
    session.standaloneSeen = true;
    session.lastActivityMs = session.lastStandaloneMs = this.#parts.context.clock.monoMs();
    this.tellChanges(session);
  }

  /**
   * A client that may have missed changes is told what to read again, as soon as it listens, its server is there and it
   * has said that it is initialized: MCP allows nothing but pings and log messages before that.
   */
  tellChanges(session: HostedSession): void {
    if (!session.mayHaveMissed || !session.standaloneSeen || !session.isLoaded) return;
    if (session.record?.initialized !== true) return;
    session.mayHaveMissed = false;
    for (const method of listChanges(session.capabilities))
      this.say(session, null, JSON.stringify({ jsonrpc: '2.0', method }));
  }

  async #answer(session: HostedSession, message: JsonRpcResponse): Promise<void> {
    const { calls, records, life } = this.#options;
    const { context, over } = this.#parts;
    const call = message.id === null ? undefined : session.calls.get(idKey(message.id));
    if (call?.state !== 'running') {
      drop(this.#parts, 'answer-to-no-call');
      return;
    }
    if (!this.#repeated.mayAnswer(session, call)) return;
    const { method, params } = call.message;
    if (message.error === undefined) {
      if (method === 'tools/list') context.catalogs.get(session.server)?.learn(message.result);
      try {
        // What another worker needs to go on must be in the log before the client can act on the answer.
        if (method === 'initialize') await records.begin(session, call.message, message.result);
        else await records.update(session, method, params);
      } catch (error) {
        if (over.aborted) return;
        context.logger.warn('session record failed', { session: session.key, error: errorText(error) });
        calls.fail(
          session,
          call,
          wireError('LOG_UNAVAILABLE', 'The session could not be recorded', { mayHaveRun: true }),
        );
        if (method === 'initialize') void life.end(session.key, 'unknown');
        return;
      }
    }
    calls.answer(session, call, JSON.stringify(message));
    if (method === 'initialize' && message.error !== undefined) await life.end(session.key, 'server-gone');
  }

  #notify(session: HostedSession, message: JsonRpcNotification, speaker: Speaker): void {
    if (message.method === 'notifications/progress') {
      const token = message.params?.['progressToken'];
      const call = typeof token === 'string' || typeof token === 'number' ? session.tokens.get(token) : undefined;
      if (call?.state !== 'running') drop(this.#parts, 'progress-of-no-call');
      else this.#sayOrDrop(session, call, message);
      return;
    }
    if (message.method === 'notifications/cancelled') {
      this.#cancel(session, message);
      return;
    }
    if (message.method === 'notifications/tools/list_changed')
      this.#parts.context.catalogs.get(session.server)?.forget();
    this.#sayOrDrop(session, this.#callOf(session, message, speaker), message);
  }

  /** The call on whose stream a notification is told. */
  #callOf(session: HostedSession, message: JsonRpcNotification, speaker: Speaker): OpenCall | null {
    if (speaker === 'over') return null;
    if (speaker !== 'unknown') return speaker.state === 'running' ? speaker : null;
    const expecting = this.#repeated.whoExpects(session, message);
    if (expecting !== undefined) return expecting;
    // A log line of the only call that runs is told where that call is answered; but not while it repeats itself, since
    // a server that starts may speak for itself.
    const isCalls = message.method === 'notifications/message' && this.#repeated.repeating(session).length === 0;
    const call = isCalls ? onlyRunning(session) : undefined;
    return call?.state === 'running' ? call : null;
  }

  #cancel(session: HostedSession, message: JsonRpcNotification): void {
    const requestId = message.params?.['requestId'];
    if (typeof requestId !== 'string' && typeof requestId !== 'number') return;
    const id = knownAs(session, requestId);
    const outgoing = id === undefined ? undefined : session.outgoing.get(id);
    if (id === undefined || outgoing === undefined) return;
    session.outgoing.delete(id);
    this.#sayOrDrop(session, outgoing.call, { ...message, params: { ...message.params, requestId: id } });
  }

  #ask(session: HostedSession, message: JsonRpcRequest, speaker: Speaker): void {
    // Before all else: no client ever saw it, so no memory of a call holds it.
    const undeclared = undeclaredOf(message, session.clientCapabilities);
    if (undeclared !== null) {
      this.#refuseUndeclared(session, message, undeclared);
      return;
    }
    if (speaker === 'over') {
      this.#refuse(session, message, 'SERVER_FAILED', 'The call that asks is over');
      return;
    }
    if (session.outgoing.size >= MAX_OUTGOING) {
      this.#refuse(session, message, 'CAPACITY', 'Too many requests wait for the client');
      return;
    }
    const id = wireRequestId(this.#parts.claim, session.instanceNumber, message.id);
    const expecting = speaker === 'unknown' ? this.#repeated.whoExpects(session, message) : speaker;
    const repeating = this.#repeated.repeating(session);
    const others = running(session).filter((each) => !repeating.includes(each));
    // It is another question of one of them, and nobody knows of which; or one that comes out of its turn.
    const strayed = others.length === 0 ? repeating : this.#repeated.whoRemembers(session, message);
    if (expecting === undefined && strayed.length > 0) {
      for (const call of strayed) this.#repeated.lose(session, call);
      this.#refuse(session, message, 'SERVER_FAILED', 'The call that asks has failed');
      return;
    }
    const call = expecting ?? (others.length === 1 || !session.standaloneSeen ? others[0] : undefined);
    if (call !== undefined && this.#repeated.hear(session, call, message)) return;
    // The log says whose it may be: none of them can be run again without asking it a second time.
    const among = expecting === undefined && others.length > 1 ? others : [];
    session.outgoing.set(id, { call: call ?? null, id: message.id });
    if (this.say(session, call ?? null, JSON.stringify({ ...message, id }), among)) {
      for (const each of among) each.sent = true;
      return;
    }
    session.outgoing.delete(id);
    this.#refuse(session, message, 'RESULT_TOO_LARGE', 'The request is larger than a record of the log may be');
  }

  /** The server hears at once what a client that cannot do it would say. */
  #refuseUndeclared(session: HostedSession, { id, method }: JsonRpcRequest, lack: Undeclared): void {
    const { name, requiredCapabilities, isPart } = lack;
    drop(this.#parts, 'capability-undeclared');
    if (!session.undeclared.has(name)) {
      session.undeclared.add(name);
      this.#parts.context.logger.warn('the server asks what its client did not declare; the client is not asked', {
        partition: this.#parts.partition,
        session: session.key,
        server: session.server,
        method,
        capability: name,
      });
    }
    const text = `The client did not declare the capability ${name}; it was not asked`;
    const error = wireError(isPart ? 'CAPABILITY_LIMITED' : 'CAPABILITY_UNDECLARED', text, { requiredCapabilities });
    this.#options.pass(session, { jsonrpc: '2.0', id, error });
  }

  #refuse(
    session: HostedSession,
    { id }: JsonRpcRequest,
    code: 'CAPACITY' | 'RESULT_TOO_LARGE' | 'SERVER_FAILED',
    text: string,
  ): void {
    this.#options.pass(session, { jsonrpc: '2.0', id, error: wireError(code, text) });
  }

  #sayOrDrop(session: HostedSession, call: OpenCall | null, message: JsonRpcNotification): void {
    if (call !== null && this.#repeated.hear(session, call, message)) return;
    const json = JSON.stringify(message);
    if (this.say(session, call, json)) return;
    drop(this.#parts, 'too-large');
    this.#parts.context.logger.error(
      'a message of the server is larger than a record may be; the client does not get it',
      {
        partition: this.#parts.partition,
        session: session.key,
        server: session.server,
        method: 'method' in message ? message.method : undefined,
        characters: json.length,
      },
    );
  }

  #flooded(session: HostedSession): void {
    this.#parts.context.logger.error('the server does not wait for the log; its session is ended', {
      partition: this.#parts.partition,
      session: session.key,
      server: session.server,
    });
    void this.#options.life.end(session.key, 'server-gone');
  }
}

function running(session: HostedSession): readonly OpenCall[] {
  return [...session.calls.values()].filter((call) => call.state === 'running').sort((a, b) => a.at - b.at);
}

function onlyRunning(session: HostedSession): OpenCall | undefined {
  const [first, second] = running(session);
  return second === undefined ? first : undefined;
}

/** A client hears only of changes that the server said it would tell. */
function listChanges(capabilities: Readonly<Record<string, unknown>>): readonly string[] {
  return ['tools', 'resources', 'prompts']
    .filter((kind) => (capabilities[kind] as { readonly listChanged?: unknown } | undefined)?.listChanged === true)
    .map((kind) => `notifications/${kind}/list_changed`);
}
