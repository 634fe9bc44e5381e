/** A broker that answers ApiVersions and Metadata, and Fetch if it is told how, in order, with what a test says. */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { ByteReader, ByteWriter } from '../wire/bytes.ts';

export interface FakeBroker extends AsyncDisposable {
  readonly port: number;
  /** Topics that it was asked about, in order. */
  readonly asked: readonly string[];
  /** Closes all its connections, as a restart does. */
  cut(): void;
}

/** What a Fetch from `offset` on is answered with. */
export interface FakeFetched {
  readonly error: number;
  readonly end: number;
  readonly batches: Buffer;
}

/** What each topic's one partition is said to be led by. */
export interface FakeLeader {
  readonly node: number;
  readonly epoch: number;
}

const FETCH = 1;
const API_VERSIONS = 18;
const METADATA = 3;
const NOT_SAID = -(2 ** 31);

/** @param ports of all brokers, by node; asked for when somebody asks. */
export async function startFakeBroker(
  ports: () => readonly number[],
  leader: (topic: string) => FakeLeader,
  fetch?: (offset: number) => FakeFetched,
): Promise<FakeBroker> {
  const asked: string[] = [];
  const answerTo = (request: Buffer): Buffer => {
    const reader = new ByteReader(request);
    const apiKey = reader.int16();
    reader.int16();
    const correlation = reader.int32();
    reader.nullableString();
    const answer = new ByteWriter().int32(correlation);
    if (apiKey === API_VERSIONS) {
      const versions = [API_VERSIONS, METADATA] as const;
      return answer
        .int16(0)
        .array(versions, (key) =>
          answer
            .int16(key)
            .int16(0)
            .int16(key === METADATA ? 8 : 0),
        )
        .done();
    }
    if (apiKey === FETCH && fetch !== undefined) {
      reader.raw(4 + 4 + 4 + 4 + 1 + 4 + 4 + 4);
      const topic = reader.string();
      reader.raw(4 + 4 + 4);
      const fetched = fetch(reader.int64());
      return answer
        .int32(0)
        .int16(0)
        .int32(0)
        .array([topic], (name) => {
          answer.string(name).array([0], () => {
            answer.int32(0).int16(fetched.error).int64(fetched.end).int64(fetched.end).int64(0);
            answer.int32(0).int32(-1).bytes(fetched.batches);
          });
        })
        .done();
    }
    const topics = reader.array(() => reader.string());
    asked.push(...topics);
    return answer
      .int32(0)
      .array([...ports().entries()], ([node, port]) => answer.int32(node).string('127.0.0.1').int32(port).int16(-1))
      .string('cluster')
      .int32(0)
      .array(topics, (topic) => {
        const { node, epoch } = leader(topic);
        answer.int16(0).string(topic).int8(0);
        answer.array([0], () => answer.int16(0).int32(0).int32(node).int32(epoch).int32(0).int32(0).int32(0));
        answer.int32(NOT_SAID);
      })
      .int32(NOT_SAID)
      .done();
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    let rest = Buffer.alloc(0);
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
        const end = 4 + rest.readInt32BE(0);
        const body = answerTo(rest.subarray(4, end));
        rest = rest.subarray(end);
        socket.write(Buffer.concat([new ByteWriter().int32(body.length).done(), body]));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
