/** How the events of one stream get their ids, in each dialect; and the ids of a process that forgot. */
import { randomBytes, randomUUID } from 'node:crypto';
import {
  anchorChecksum,
  encodeText,
  extendChain,
  formatEventId,
  makeEpoch,
  makeSessionKey,
  signSessionId,
  startChain,
  streamTag,
} from '@throughline/protocol';
import type { JsonRpcId, StreamLabel } from '@throughline/protocol';
import type { Dialect } from './fault-table.ts';

export interface StreamNumbering {
  /** An id of the place that the stream has reached: it moves a cursor and delivers nothing. */
  here(): string;
  next(data: string): string;
  /** The same stream in a process that knows how many messages there were, but not what they were. */
  withoutMemory(seq: number): StreamNumbering;
}

/** Longest stream of the dialect `numbered`. */
const RANGE = 100_000;

/** What the ids of one server have in common. */
export class Numbers {
  readonly epoch = makeEpoch(randomBytes(10));
  readonly #dialect: Dialect;
  readonly #secret = randomBytes(32);
  /** Next position in the log; other sessions write there too, so the offsets of a stream have holes. */
  #offset = 1000;
  #clockMs = 1_700_000_000_000;
  #numberedStreams = 0;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  takeOffset(): number {
    return (this.#offset += 3);
  }

  makeSessionId(): string {
    if (this.#dialect !== 'throughline') return randomUUID();
    return signSessionId(
      {
        epoch: this.epoch,
        partition: 0,
        from: this.takeOffset(),
        createdMs: Date.now(),
        key: makeSessionKey(randomBytes(16)),
      },
      { principal: '', server: 'faulty' },
      this.#secret,
    );
  }

  /** @param requestId of the request that an `r` stream answers. */
  startStream(sessionId: string, label: StreamLabel, requestId?: JsonRpcId): StreamNumbering {
    switch (this.#dialect) {
      case 'throughline':
        return this.#chained(sessionId, label, requestId, 0);
      case 'numbered':
        this.#numberedStreams += 1;
        return this.#consecutive(this.#numberedStreams * RANGE, 0);
      case 'opaque':
        return this.#opaque(label.kind === 'standalone' ? '_GET_stream' : randomUUID());
    }
  }

  /** As the official SDK's own store does: stream, time and chance. */
  #opaque(stream: string): StreamNumbering {
    const next = (): string => `${stream}_${++this.#clockMs}_${randomBytes(4).toString('hex')}`;
    return { here: next, next, withoutMemory: () => this.#opaque(stream) };
  }

  /** Each stream has a range of its own, since an id must name its stream. */
  #consecutive(first: number, from: number): StreamNumbering {
    let seq = from;
    const here = (): string => String(first + seq);
    const next = (): string => {
      seq += 1;
      return here();
    };
    return { here, next, withoutMemory: (known) => this.#consecutive(first, known) };
  }

  #chained(sessionId: string, stream: StreamLabel, requestId: JsonRpcId | undefined, from: number): StreamNumbering {
    const tag = streamTag(sessionId, stream);
    let seq = from;
    let chain = startChain(sessionId, stream);
    let offset = this.takeOffset();
    let crc = 0;
    const here = (): string =>
      formatEventId({
        epoch: this.epoch,
        partition: 0,
        offset,
        stream,
        ...(requestId === undefined ? {} : { requestId }),
        seq,
        tag,
        crc,
        chain,
      });
    return {
      here,
      next: (data) => {
        const value = encodeText(data);
        offset = this.takeOffset();
        seq += 1;
        chain = extendChain(chain, value);
        crc = anchorChecksum({ key: encodeText(sessionId), value, headers: [], offset, timestampMs: ++this.#clockMs });
        return here();
      },
      withoutMemory: (known) => this.#chained(sessionId, stream, requestId, known),
    };
  }
}
