/** A broker that knows nothing but who leads: answers ApiVersions and Metadata, in order, with what a test says. */
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { ByteReader, ByteWriter } from '../wire/bytes.ts';

export interface FakeBroker extends AsyncDisposable {
  readonly port: number;
  /** Topics that it was asked about, in order. */
  readonly asked: readonly string[];
}

/** What each topic's one partition is said to be led by. */
export interface FakeLeader {
  readonly node: number;
  readonly epoch: number;
}

const API_VERSIONS = 18;
const METADATA = 3;
const NOT_SAID = -(2 ** 31);

/** @param ports of all brokers, by node; asked for when somebody asks. */
export async function startFakeBroker(
  ports: () => readonly number[],
  leader: (topic: string) => FakeLeader,
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
  const server = createServer((socket) => {
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
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
