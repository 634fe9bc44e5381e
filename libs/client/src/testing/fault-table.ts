/**
 * Every misbehaviour that the faulty server knows, as one table: tests, verdicts and docs/reference/client-faults.md are
 * made from it. Pure. SPEC: LIAR-TABLE.
 */

/**
 * How the server numbers.
 * - `throughline`: real ids of Throughline, so that number, chain and epoch can be checked.
 * - `numbered`: integers, consecutive in each stream, and an epoch header, as the source document has it.
 * - `opaque`: as the official SDK's server with its own store: stream, time and chance.
 */
export type Dialect = 'throughline' | 'numbered' | 'opaque';
export const DIALECTS: readonly Dialect[] = ['throughline', 'numbered', 'opaque'];

/**
 * - `harmless`: a correct client does not notice, or mends it unseen.
 * - `transport-error`: a correct client tries again with the same cursor, and tells an error when its time is over.
 * - `must-be-refused`: nothing of it may be delivered, the cursor must not be used again, and the application hears it.
 */
export type FaultClass = 'harmless' | 'transport-error' | 'must-be-refused';

/**
 * What a client made of a fault.
 * - `exact`: every event once, in order and unaltered, and the true result.
 * - `refused`: it said that continuity is lost, and had delivered nothing false.
 * - `failed`: the call ended in another error; nothing false was delivered.
 * - `unproven`: it delivered something false, but had said that it could not prove it.
 * - `fooled`: it delivered something false, or skipped something, and said nothing.
 * - `hasty`: right, but it came back before the time that the server had set.
 * - `ran-twice`: the call was run a second time.
 * - `hangs`: neither a result nor an error within the bound.
 */
export type Verdict = 'exact' | 'refused' | 'failed' | 'unproven' | 'fooled' | 'hasty' | 'ran-twice' | 'hangs';

/** Where it happens: on a stream that is open, in the answer to a resume, or in the answer to the POST of the call. */
export type FaultPlace = 'stream' | 'resume' | 'post';

export interface FaultRow {
  readonly does: string;
  readonly place: FaultPlace;
  readonly class: FaultClass;
  /** What a correct client does. */
  readonly correct: string;
  /** Verdicts of a client that is not fooled; the first is that of a correct one. */
  readonly right: readonly [Verdict, ...Verdict[]];
  /** Dialects in which a client can prove it; in the others it can only say that it could not (`unproven`). */
  readonly provable: readonly Dialect[];
  /** The client is told to wait so long before it comes back. */
  readonly asksWaitMs?: number;
  /** `document`: the second source document on silent divergence; `wild`: seen in servers, proxies and load balancers. */
  readonly source: 'document' | 'wild';
}

const ANY = DIALECTS;
const NUMBERED: readonly Dialect[] = ['throughline', 'numbered'];
const CHAINED: readonly Dialect[] = ['throughline'];
const GOES_ON = ['exact'] as const;
const RETRIES = ['exact', 'failed'] as const;
const GIVES_UP = ['failed', 'refused'] as const;
/** Throughline answers a repeated request with the outcome of the first. */
const ENDS = ['failed', 'refused', 'exact'] as const;
const REFUSES = ['refused', 'failed'] as const;

export const FAULT_TABLE = {
  'gap-continuous-ids': {
    does: 'A new process kept the counter but not the history: it answers the resume with the next numbers, but the missed events are gone, and later ones have their numbers.',
    place: 'resume',
    class: 'must-be-refused',
    correct: 'The chain in the first id does not follow from what was received: refuse.',
    right: REFUSES,
    provable: CHAINED,
    source: 'document',
  },
  'gap-in-ids': {
    does: 'The answer to the resume leaves out the first missed event; the ids of the others are true.',
    place: 'resume',
    class: 'must-be-refused',
    correct: 'The first number is above last + 1: refuse.',
    right: REFUSES,
    provable: NUMBERED,
    source: 'document',
  },
  'session-resurrected': {
    does: 'The stale session id is accepted as that of a fresh session: the resume is answered from a new stream with other content, under the same session id and epoch.',
    place: 'resume',
    class: 'must-be-refused',
    correct: 'The ids name another stream, or their numbers do not follow: refuse.',
    right: REFUSES,
    provable: NUMBERED,
    source: 'document',
  },
  'another-session': {
    does: "The resume is answered with another client's events; the session header echoes what was asked.",
    place: 'resume',
    class: 'must-be-refused',
    correct: 'The check in the ids belongs to another session, or their numbers do not follow: refuse.',
    right: REFUSES,
    provable: NUMBERED,
    source: 'document',
  },
  'replay-from-zero': {
    does: 'A cursor that a replica does not know counts as none: the resume is answered with the whole stream from its first event.',
    place: 'resume',
    class: 'must-be-refused',
    correct: 'The first id is at or below the last one: refuse, deliver nothing again.',
    right: REFUSES,
    provable: ANY,
    source: 'document',
  },
  'epoch-changed': {
    does: 'The events go on without a fault, but `X-MCP-Replay-Epoch` of the resume is another than before.',
    place: 'resume',
    class: 'must-be-refused',
    correct: 'Compare the header with the stored epoch: refuse, whatever the ids say.',
    right: REFUSES,
    provable: ANY,
    source: 'document',
  },
  'session-id-changed': {
    does: 'The events go on without a fault, but `Mcp-Session-Id` of the resume is another than before.',
    place: 'resume',
    class: 'must-be-refused',
    correct: 'Compare the header with the stored session id: refuse, whatever the ids say.',
    right: REFUSES,
    provable: ANY,
    source: 'document',
  },
  'altered-payload': {
    does: 'The first missed event is replayed under its true id with another payload.',
    place: 'resume',
    class: 'must-be-refused',
    correct: 'The chain in the id does not follow from this payload: refuse.',
    right: REFUSES,
    provable: CHAINED,
    source: 'document',
  },
  'altered-boundary': {
    does: 'The last event that the client has is sent again under its true id with another payload.',
    place: 'resume',
    class: 'must-be-refused',
    correct: 'The id is the stored one, the digest is not: refuse.',
    right: REFUSES,
    provable: ANY,
    source: 'document',
  },
  'repeated-boundary': {
    does: 'The last event that the client has is sent again, unchanged, before the missed ones.',
    place: 'resume',
    class: 'harmless',
    correct: 'Id and digest are the stored ones: drop it and go on.',
    right: GOES_ON,
    provable: ANY,
    source: 'document',
  },
  reordered: {
    does: 'The first two missed events are replayed in the wrong order, each under its true id.',
    place: 'resume',
    class: 'must-be-refused',
    correct: 'The first number is above last + 1: refuse.',
    right: REFUSES,
    provable: NUMBERED,
    source: 'document',
  },
  'another-stream': {
    does: 'The resume is answered with the events of another stream of the same session.',
    place: 'resume',
    class: 'must-be-refused',
    correct: 'The ids name another stream, or their numbers do not follow: refuse.',
    right: REFUSES,
    provable: NUMBERED,
    source: 'document',
  },
  'cut-utf8': {
    does: 'The bytes of one character are sent in two chunks.',
    place: 'stream',
    class: 'harmless',
    correct: 'Decode the stream, not the chunks.',
    right: GOES_ON,
    provable: ANY,
    source: 'wild',
  },
  'truncated-utf8': {
    does: 'The last byte of one character is lost inside an event that is otherwise whole.',
    place: 'stream',
    class: 'transport-error',
    correct: 'The bytes are no UTF-8: deliver nothing of that event, resume behind the one before.',
    right: ['exact', 'refused', 'failed'],
    provable: ANY,
    source: 'wild',
  },
  crlf: {
    does: 'Lines end with CR LF, once with the two in different chunks.',
    place: 'stream',
    class: 'harmless',
    correct: 'Read lines as the SSE standard says.',
    right: GOES_ON,
    provable: ANY,
    source: 'wild',
  },
  bom: {
    does: 'Each stream begins with a byte order mark.',
    place: 'stream',
    class: 'harmless',
    correct: 'Skip it, as the SSE standard says.',
    right: GOES_ON,
    provable: ANY,
    source: 'wild',
  },
  'no-final-newline': {
    does: 'The connection ends behind the `data` line of the result, without the empty line that would dispatch it.',
    place: 'stream',
    class: 'harmless',
    correct: 'The event is not whole: drop it, resume behind the one before.',
    right: GOES_ON,
    provable: ANY,
    source: 'wild',
  },
  'retry-directive': {
    does: 'The connection is closed with `retry: 400`.',
    place: 'stream',
    class: 'harmless',
    correct: 'Come back after 400 ms, not before.',
    right: GOES_ON,
    provable: ANY,
    asksWaitMs: 400,
    source: 'wild',
  },
  'silent-stream': {
    does: 'The connection stays open and says nothing any more, not even a keepalive.',
    place: 'stream',
    class: 'transport-error',
    correct: 'Notice that keepalives are missing, drop the connection, resume with the same cursor.',
    right: RETRIES,
    provable: ANY,
    source: 'wild',
  },
  'answer-on-wrong-stream': {
    does: 'A false result of the call comes on the standalone stream; the true one follows on its own stream.',
    place: 'stream',
    class: 'must-be-refused',
    correct:
      'A standalone stream may carry no response: refuse it; to pass it over and wait for the true one is right as well.',
    right: ['refused', 'exact', 'failed'],
    provable: CHAINED,
    source: 'wild',
  },
  'dropped-twice': {
    does: 'The connection is cut, and so is the resumed one before any event.',
    place: 'resume',
    class: 'transport-error',
    correct: 'Keep the cursor over connections that said nothing, resume with it again.',
    right: RETRIES,
    provable: ANY,
    source: 'wild',
  },
  'empty-200': {
    does: 'Every resume is answered with 200, `text/event-stream` and an empty body, for ever.',
    place: 'resume',
    class: 'transport-error',
    correct: 'Back off, and end the call with an error when its time is over.',
    right: GIVES_UP,
    provable: ANY,
    source: 'wild',
  },
  'html-page': {
    does: 'A proxy answers the resume once with 200 and an HTML page.',
    place: 'resume',
    class: 'transport-error',
    correct: 'No event stream is no answer: resume again with the same cursor.',
    right: RETRIES,
    provable: ANY,
    source: 'wild',
  },
  'status-404': {
    does: 'The session is gone: the resume is answered with 404, and so is all that names the session.',
    place: 'resume',
    class: 'must-be-refused',
    correct: 'End what was pending with an error, initialize anew.',
    right: REFUSES,
    provable: ANY,
    source: 'document',
  },
  'status-204': {
    does: 'Every resume is answered with 204, as if nothing could follow, though the call was not answered.',
    place: 'resume',
    class: 'transport-error',
    correct: 'Nothing more will come: end the call with an error.',
    right: ENDS,
    provable: ANY,
    source: 'wild',
  },
  'status-405': {
    does: 'Every GET is answered with 405 once the connection has ended: what began cannot be resumed.',
    place: 'resume',
    class: 'transport-error',
    correct: 'There is no way to resume: end the call with an error.',
    right: ENDS,
    provable: ANY,
    source: 'wild',
  },
  'status-409': {
    does: 'The former connection is not yet noticed as gone: the resume is answered once with 409.',
    place: 'resume',
    class: 'transport-error',
    correct: 'Resume again with the same cursor.',
    right: RETRIES,
    provable: ANY,
    source: 'wild',
  },
  'status-503': {
    does: 'The resume is answered once with 503 and `Retry-After: 1`.',
    place: 'resume',
    class: 'transport-error',
    correct: 'Resume with the same cursor after a second, not before.',
    right: RETRIES,
    provable: ANY,
    asksWaitMs: 1000,
    source: 'wild',
  },
  'status-401': {
    does: 'The token has expired: the resume and everything after it is answered with 401.',
    place: 'resume',
    class: 'transport-error',
    correct: 'Ask for a new token. Without one the call ends with an error; the session is not over.',
    right: GIVES_UP,
    provable: ANY,
    source: 'wild',
  },
  'redirect-same-origin': {
    does: 'The resume is redirected (307) to another path of the same origin, where it is answered well.',
    place: 'resume',
    class: 'transport-error',
    correct: 'Follow it; a client that follows no redirect, and tells so, is right as well.',
    right: ['exact', 'refused', 'failed'],
    provable: ANY,
    source: 'wild',
  },
  'redirect-other-origin': {
    does: "The first resume is redirected (307) to another origin, which answers with another session's events.",
    place: 'resume',
    class: 'must-be-refused',
    correct: 'Session id and cursor are for one origin only: do not follow.',
    right: ['refused', 'failed', 'exact'],
    provable: ANY,
    source: 'wild',
  },
  'post-202': {
    does: 'The POST of the call is answered with 202 and no body; the call may have run.',
    place: 'post',
    class: 'transport-error',
    correct:
      'Nothing will come: end the call with an error; post it again only where the server promises not to run it twice.',
    right: ENDS,
    provable: ANY,
    source: 'wild',
  },
  'post-404': {
    does: 'The session is gone: the POST of the call is answered with 404.',
    place: 'post',
    class: 'must-be-refused',
    correct:
      'Say that the session is lost, initialize anew. Nothing was run: the call ends with an error, or is made again in the new session.',
    right: ['refused', 'exact', 'failed'],
    provable: ANY,
    source: 'wild',
  },
  'post-503': {
    does: 'The POST of the call is answered once with 503 and `Retry-After: 1`; nothing was run.',
    place: 'post',
    class: 'transport-error',
    correct: 'End the call with an error, or post it again after a second.',
    right: RETRIES,
    provable: ANY,
    asksWaitMs: 1000,
    source: 'wild',
  },
  'post-401': {
    does: 'The token has expired: the POST of the call and everything after it is answered with 401.',
    place: 'post',
    class: 'transport-error',
    correct: 'Without a new token the call ends with an error.',
    right: GIVES_UP,
    provable: ANY,
    source: 'wild',
  },
  'post-html-page': {
    does: 'A proxy answers the POST of the call with 200 and an HTML page; the call may have run.',
    place: 'post',
    class: 'transport-error',
    correct: 'End the call with an error; post it again only where the server promises not to run it twice.',
    right: ENDS,
    provable: ANY,
    source: 'wild',
  },
  'post-empty-200': {
    does: 'The POST of the call is answered with 200, `text/event-stream` and an empty body; the call may have run.',
    place: 'post',
    class: 'transport-error',
    correct:
      'There is no id to resume at: end the call with an error; post it again only where the server promises not to run it twice.',
    right: ENDS,
    provable: ANY,
    source: 'wild',
  },
} as const satisfies Record<string, FaultRow>;

export type FaultName = keyof typeof FAULT_TABLE;
export const FAULT_NAMES = Object.keys(FAULT_TABLE) as readonly FaultName[];

/**
 * What a client may make of a fault in a dialect; the first is that of a correct one. Opaque ids prove nothing about what
 * a resume leaves out, so there a strict client refuses each; another one says `unproven` where it cannot tell.
 */
export function rightVerdicts(fault: FaultName, dialect: Dialect): readonly [Verdict, ...Verdict[]] {
  const row: FaultRow = FAULT_TABLE[fault];
  const [first, ...others] = row.right;
  const more: Verdict[] = row.provable.includes(dialect) ? [] : ['unproven'];
  if (dialect === 'opaque' && row.place !== 'post') more.push('refused');
  return [first, ...new Set([...others, ...more].filter((verdict) => verdict !== first))];
}
