import { rightVerdicts, runClientCheck } from '@throughline/client/testing';
import { describe, expect, it } from 'vitest';
import { checkClient, CHECKED_CLIENTS, readRecord, verdictsOf, versionOf } from './checked-clients.ts';
import { connectResumable } from './resumable-client.ts';

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
  }, 180_000);
});

it.each([
  ['strict', 'v2'],
  ['compatible', 'v1'],
] as const)(
  '[LIAR-RECORDED] on the standalone stream every verdict of ResumableTransport, %s, is right as well',
  async (policy, line) => {
    const options = { stream: 'standalone' } as const;
    const { runs, wrong } = await runClientCheck(connectResumable(line, policy), options);
    expect(runs).toHaveLength(3 * 27);
    const again = await Promise.all(
      wrong.map(({ fault, dialect }) =>
        runClientCheck(connectResumable(line, policy), {
          ...options,
          faults: [fault],
          dialects: [dialect],
          boundMs: 10_000,
        }),
      ),
    );
    const faults = again.flatMap(({ wrong: still }) => still);
    expect(faults.map(({ fault, dialect, verdict }) => ({ fault, dialect, verdict }))).toEqual([]);
  },
  120_000,
);

it('[LIAR-RECORDED] the page tells of these clients and no others', () => {
  expect(record.map(({ name }) => name)).toEqual(CHECKED_CLIENTS.map(({ name }) => name));
});
