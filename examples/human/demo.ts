/**
 * A gateway and two workers on one log file. A tool asks a person, and the worker that runs it is killed with SIGKILL
 * while the form is open. Another worker runs the tool again with memory. Exit code 0: the person was asked once, and
 * the call finished.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { parseSessionId } from '@throughline/protocol';
import { startCluster, waitUntil, within } from '@throughline/testkit/processes';

const SERVER = fileURLToPath(new URL('./server.ts', import.meta.url));
const QUESTIONS = ['Who travels?', 'Which seat for Ada?'];

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

say('Starting a gateway and two workers on one log file …');
await using cluster = await startCluster({
  gateways: 1,
  args: ['--config', 'throughline.yaml', '--dead-after', '2500ms'],
  workerArgs: ['--heartbeat', '250ms'],
  prepare(folder) {
    const config = `servers:\n  booking: { module: ${JSON.stringify(SERVER)}, onOwnerLoss: restore }\n`;
    writeFileSync(path.join(folder, 'throughline.yaml'), config);
  },
});
const ledger = path.join(cluster.folder, 'runs.txt');
writeFileSync(ledger, '');
const runs = (): readonly string[] => readFileSync(ledger, 'utf8').split('\n').filter(Boolean);

/** The forms that the person was shown, and how to answer the newest. */
const shown: string[] = [];
let answer: (text: string) => void = () => undefined;
const client = new Client({ name: 'person', version: '1.0.0' }, { capabilities: { elicitation: {} } });
client.setRequestHandler('elicitation/create', ({ params }) => {
  shown.push(params.message);
  say(`   the person is shown a form: ${params.message}`);
  return new Promise((resolve) => {
    answer = (text) => {
      say(`   the person answers: ${text}`);
      resolve({ action: 'accept', content: { answer: text } });
    };
  });
});
const form = (count: number): Promise<unknown> => waitUntil(`form ${count}`, () => shown.length >= count);

async function demonstrate(): Promise<boolean> {
  const transport = new StreamableHTTPClientTransport(new URL(`${cluster.urls()[0] ?? ''}/booking`));
  await client.connect(transport);
  await client.listTools();
  const worker = cluster.ownerOf(parseSessionId(transport.sessionId ?? '')?.id.partition ?? -1);
  if (worker === null) return false;

  say(`\n1. An official MCP client calls the tool "book", which runs on the worker with pid ${worker.pid}`);
  const call = client.callTool({ name: 'book', arguments: { ledger } }, { timeout: 60_000 });
  call.catch(() => undefined);
  await form(1);
  answer('Ada');
  await form(2);

  say(`\n2. kill -9 ${worker.pid}, while the form is open`);
  await worker.kill();
  const killedAt = performance.now();
  await waitUntil('the second run of the tool', () => runs().length === 2, 30_000);
  say(`   ${(performance.now() - killedAt).toFixed(0)} ms later the other worker runs the tool again, with memory:`);
  say('   "Ada" is fed back, nothing is asked again, and the form of the person is still open');

  say('\n3. The person answers the form that the dead worker had opened');
  answer('4C');
  const { content } = await within('the result', call, 30_000);
  const text = content.map((item) => (item.type === 'text' ? item.text : '')).join('');
  say(`   the call finishes: ${text}`);
  say(`\n   the tool ran ${runs().length} times; the person was asked ${shown.length} questions: ${shown.join(' ')}`);
  return text === 'Ada sits on 4C.' && JSON.stringify(shown) === JSON.stringify(QUESTIONS) && runs().length === 2;
}

let isKept = false;
try {
  isKept = await demonstrate();
} catch (error) {
  say(`\n${error instanceof Error ? error.message : String(error)}`);
}
await client.close();
say(
  isKept
    ? '\nVERDICT: kept. The worker was killed while a form was open; the person was asked once, and the call finished.'
    : '\nVERDICT: broken. The person was asked twice, or the call did not finish.',
);
process.exitCode = isKept ? 0 : 1;
