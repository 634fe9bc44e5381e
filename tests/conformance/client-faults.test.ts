import { execFile } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { rightVerdicts } from '@throughline/client/testing';
import { within } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { checkClient, CHECKED_CLIENTS, readRecord, resumable, verdictsOf, versionOf } from './checked-clients.ts';

const RECORD_ANEW = 'if that is right, run tests/conformance/record-clients.ts and infra/write-reference.ts';
const record = readRecord();

describe.each(CHECKED_CLIENTS)('$name before a server that lies', (client) => {
  it('[LIAR-RECORDED] makes of every fault what the page says of this version of it', async () => {
    const recorded = record.find(({ name }) => name === client.name);
    expect(recorded?.version, RECORD_ANEW).toBe(versionOf(client.package));
    const runs = await checkClient(
      client,
      ({ fault, dialect, verdict }) => recorded?.verdicts[fault][dialect] !== verdict,
    );
    expect(runs.filter(({ wasShown }) => !wasShown).map(({ fault }) => fault)).toEqual([]);
    expect(verdictsOf(runs), RECORD_ANEW).toEqual(recorded?.verdicts);
    if (!client.mustBeRight) return;
    const wrong = runs.filter(({ fault, dialect, verdict }) => !rightVerdicts(fault, dialect).includes(verdict));
    expect(wrong.map(({ fault, dialect, verdict }) => ({ fault, dialect, verdict }))).toEqual([]);
  }, 400_000);
});

it.each([
  ['strict', 'v2'],
  ['compatible', 'v1'],
] as const)(
  '[LIAR-RECORDED] on the standalone stream every verdict of ResumableTransport, %s, is right as well',
  async (policy, line) => {
    const client = { connect: resumable(line, policy) };
    const runs = await checkClient(client, ({ isRight }) => !isRight, { stream: 'standalone' });
    expect(runs).toHaveLength(3 * 27);
    const wrong = runs.filter(({ isRight }) => !isRight);
    expect(wrong.map(({ fault, dialect, verdict }) => ({ fault, dialect, verdict }))).toEqual([]);
  },
  400_000,
);

it('[LIAR-RECORDED] the page tells of these clients and no others', () => {
  expect(record.map(({ name }) => name)).toEqual(CHECKED_CLIENTS.map(({ name }) => name));
});

it('[LIAR-CHECK] the program of the page prints the table of the faults that are asked for, and fails with its client', async () => {
  const program = fileURLToPath(new URL('check-a-client.ts', import.meta.url));
  const args = ['--conditions=@throughline/source', program, 'gap-in-ids', 'crlf'];
  const { code, text } = await within(
    'the program of the page',
    new Promise<{ code: unknown; text: string }>((resolve) => {
      execFile(process.execPath, args, (error, stdout) => resolve({ code: error?.code ?? 0, text: stdout }));
    }),
    60_000,
  );
  expect(text.trimEnd().split('\n')).toEqual([
    '| fault | throughline | numbered | opaque |',
    '| --- | --- | --- | --- |',
    '| gap-in-ids | **fooled** | **fooled** | **fooled** |',
    '| crlf | exact | exact | exact |',
  ]);
  expect(code).toBe(1);
}, 70_000);
