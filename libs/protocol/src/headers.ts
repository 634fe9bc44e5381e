/** Names on the wire: record headers, record types, HTTP headers. Nowhere else as literals. */

export const RECORD_FORMAT = '1';

export const HEADER = {
  /** Format version of the record, {@link RECORD_FORMAT}. */
  format: 'v',
  type: 'type',
  server: 'server',
  stream: 'stream',
  /** Offset of the owner's claim: its fencing token. */
  owner: 'owner',
  /** `1` on the record that ends its stream. */
  end: 'end',
  /** HMAC of the principal, on inbound records. */
  principal: 'principal',
  traceparent: 'traceparent',
  /** `i/n` on the members of a 2025-03-26 batch, i from 0. */
  batch: 'batch',
  /** On the members of a batch: a JSON array of the ids of all of them, by place; `null` where a member is no request. */
  batchIds: 'batch-ids',
  /** On inbound requests: a position of `events` after which every message of its stream lies. */
  after: 'after',
  /** Random name of one connection, on `stream.attached`. */
  attachment: 'attachment',
  /** On `owner.claimed`: the claim in force that it replaces, or `none`. */
  predecessor: 'predecessor',
  worker: 'worker',
  /** On inbound messages: the MCP revision of the HTTP request that brought them. */
  protocolVersion: 'mcp-version',
  epoch: 'epoch',
  /** On the response to a member of a batch, and on what a producer says: the offset of its record in `inbound`. */
  answers: 'answers',
  /**
   * On a request of a server that does not say to which of several running calls it belongs: their offsets in `inbound`,
   * with commas between.
   */
  among: 'among',
  /** On `request.started`: which run this is, from 1. */
  attempt: 'attempt',
  /** On messages of producers: the name of the message in its session. A second one of the same name is the same message. */
  idempotencyKey: 'idempotency-key',
  /** On messages of producers: the message counts only if the log took it up to this time, milliseconds since the Unix epoch. */
  until: 'until',
} as const;

export const INBOUND_TYPE = {
  message: 'message',
  sessionEnd: 'session.end',
  /** A notification of another process than the server, for the client of a session. */
  produced: 'producer.message',
  /** Means nothing: where it is acknowledged tells whether the history broke. */
  probe: 'history.probe',
} as const;

export const EVENT_TYPE = {
  message: 'message',
  attached: 'stream.attached',
  /** The server asks that the connections of a stream be closed; the stream goes on (polling of 2025-11-25). */
  closed: 'stream.closed',
  /** The stream ends without a message (a cancelled request). */
  ended: 'stream.ended',
  /** What is sent on the stream of the first request with this id is also sent here. */
  alias: 'stream.alias',
  started: 'request.started',
  sessionEnded: 'session.ended',
  claimed: 'owner.claimed',
  checkpoint: 'owner.checkpoint',
  released: 'owner.released',
  /** As in `inbound`. */
  probe: 'history.probe',
} as const;

/** The stream header of messages and attachments that belong to whichever standalone stream is in force at their place. */
export const STANDALONE = 's';
export const NO_PREDECESSOR = 'none';

export const HTTP_HEADER = {
  sessionId: 'Mcp-Session-Id',
  protocolVersion: 'MCP-Protocol-Version',
  lastEventId: 'Last-Event-ID',
  replayEpoch: 'X-MCP-Replay-Epoch',
  replayFrom: 'X-MCP-Replay-From',
} as const;

/** Revisions with sessions and resumption, oldest first. */
export const LEGACY_VERSIONS = ['2025-03-26', '2025-06-18', '2025-11-25'] as const;
export type LegacyVersion = (typeof LEGACY_VERSIONS)[number];
const LAST_VERSION_WITH_SESSIONS: LegacyVersion = '2025-11-25';

export function isLegacyVersion(text: string): text is LegacyVersion {
  return (LEGACY_VERSIONS as readonly string[]).includes(text);
}

/** Before this transport: older clients and servers of the official SDKs agree on them over it all the same. */
const OLDER_VERSIONS: readonly string[] = ['2024-10-07', '2024-11-05'];

export function isOlderVersion(text: string): boolean {
  return OLDER_VERSIONS.includes(text);
}

const REVISION = /^\d{4}-\d\d-\d\d$/;

/** Whether `text` names a revision after the last one with sessions. Revisions are dates. */
export function isLaterVersion(text: string): boolean {
  return REVISION.test(text) && text > LAST_VERSION_WITH_SESSIONS;
}

/** Whether a client of this revision understands an event with an id and empty data, and polling. Revisions are dates. */
export function canPrime(version: string): boolean {
  return version >= FIRST_VERSION_WITH_PRIMING;
}

/** Whether a client of this revision may send JSON-RPC batches. */
export function canBatch(version: string): boolean {
  return version <= BATCH_VERSION;
}

/** Clients of this revision and later understand an event with an id and empty data, and polling. */
export const FIRST_VERSION_WITH_PRIMING: LegacyVersion = '2025-11-25';
/** The only revision with JSON-RPC batches, and the one assumed without a version header. */
export const BATCH_VERSION: LegacyVersion = '2025-03-26';
