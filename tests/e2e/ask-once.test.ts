import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { parseSessionId } from '@throughline/protocol';
import { startCluster, waitUntil, within } from '@throughline/testkit/processes';
import type { Cluster, ThroughlineProcess } from '@throughline/testkit/processes';
import { afterAll, beforeAll, expect } from 'vitest';
import { BOOKING_STDIO, BOOKING_V1, BOOKING_V2 } from './fixtures/paths.ts';
import { it, makeLog } from './log-under-test.ts';
import { CLIENT_LINES, connectOfficial } from './official-client.ts';
import type { ClientLine, Elicited, OfficialClient } from './official-client.ts';
import { showLogsOnFailure } from './show-logs.ts';

const SERVERS = ['v1', 'v2', 'stdio'] as const;
/** A person may take long; none of the timeouts on the way may be what ends the call. */
const CALL_MS = 60_000;

let cluster: Cluster;

beforeAll(async () => {
  const stdio = [process.execPath, '--conditions=@throughline/source', BOOKING_STDIO];
  cluster = await startCluster({
    log: makeLog,
    gateways: 1,
    args: ['--dead-after', '2500ms'],
    workerArgs: ['--heartbeat', '250ms', '--config', 'throughline.yaml'],
    gatewayArgs: ['--config', 'throughline.yaml'],
    prepare(folder) {
      writeFileSync(
        path.join(folder, 'throughline.yaml'),
        `servers:
  v1: { module: ${JSON.stringify(BOOKING_V1)}, onOwnerLoss: restore }
  v2: { module: ${JSON.stringify(BOOKING_V2)}, onOwnerLoss: restore }
  stdio: { stdio: ${JSON.stringify(stdio.join(' '))}, onOwnerLoss: restore }
`,
      );
    },
  });
}, 90_000);
afterAll(() => cluster[Symbol.asyncDispose](), 60_000);

/** Someone who answers a form when told to. */
class Person {
  readonly asked: string[] = [];
  readonly #answers: ((answer: Elicited) => void)[] = [];

  readonly show = (message: string): Promise<Elicited> => {
    this.asked.push(message);
    return new Promise((resolve) => this.#answers.push(resolve));
  };

  answer(text: string): void {
    const answer = this.#answers.shift();
    if (answer === undefined) throw new Error('no form is open');
    answer({ action: 'accept', content: { answer: text } });
  }
}

interface Booking {
  readonly name: string;
  readonly person: Person;
  readonly client: OfficialClient;
  readonly progress: number[];
  readonly result: Promise<string>;
}

/** A call on a session of this worker, whose second form is open. */
async function book(server: string, line: ClientLine, worker: ThroughlineProcess, file: string): Promise<Booking> {
  const [url = ''] = cluster.urls();
  const name = `${server}-${line}-${worker.pid}`;
  const person = new Person();
  const client = await waitUntil('a session on the worker', async () => {
    const made = await connectOfficial(line, { url: `${url}/${server}`, elicit: person.show });
    const partition = parseSessionId(made.sessionId() ?? '')?.id.partition ?? -1;
    if (cluster.ownerOf(partition) === worker) return made;
    await made[Symbol.asyncDispose]();
    return null;
  });
  // Its worker knows the annotations by then, as from any client that lists tools.
  expect(await client.toolNames()).toEqual(['book']);
  const progress: number[] = [];
  const result = client.callTool(
    'book',
    { file, id: name },
    { onProgress: (step) => progress.push(step), timeoutMs: CALL_MS },
  );
  result.catch(() => undefined);
  await waitUntil('the first form', () => person.asked.length === 1);
  person.answer('Ada');
  await waitUntil('the second form', () => person.asked.length === 2);
  return { name, person, client, progress, result };
}

const starts = (file: string, name: string): number =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line === `start ${name}`).length;

it.each([
  ['before another worker has taken over', 0],
  ['after the tool runs again', 1],
])(
  '[E2E-HUMAN] a person whose form is open when the worker is killed is asked once, and answers %s',
  async (_when, place) => {
    showLogsOnFailure(cluster);
    const file = path.join(cluster.folder, `runs-${place}.txt`);
    writeFileSync(file, '');
    const victim = cluster.workers[place]!;
    const bookings: Booking[] = [];
    for (const server of SERVERS)
      for (const line of CLIENT_LINES) bookings.push(await book(server, line, victim, file));
    await victim.kill();
    const killedAt = performance.now();
    const runAgain = (): Promise<true> =>
      waitUntil('all calls to run again', () => bookings.every(({ name }) => starts(file, name) === 2), 30_000);
    if (place === 1) await runAgain();
    const answeredAt = performance.now();
    for (const { person } of bookings) person.answer('4C');
    if (place === 0) await runAgain();
    for (const { name, person, progress, result } of bookings) {
      expect(await within(`${name} to finish`, result, 30_000), name).toBe('Ada sits on 4C');
      expect(person.asked, name).toEqual(['Who travels?', 'Which seat for Ada?']);
      // The official clients lose progress that comes with the result now and then; none may come twice.
      expect(
        [
          [1, 2],
          [1, 2, 3],
        ],
        name,
      ).toContainEqual(progress);
      expect(starts(file, name), name).toBe(2);
    }
    const finished = performance.now();
    process.stdout.write(
      `ask-once: ${bookings.length} calls finished ${(finished - killedAt).toFixed(0)} ms after the kill, ${(finished - answeredAt).toFixed(0)} ms after the answers\n`,
    );
    for (const { client } of bookings) await client[Symbol.asyncDispose]();
    await cluster.startWorker(place);
  },
  150_000,
);
