import { rightVerdicts } from '@throughline/client/testing';
import { describe, expect, it } from 'vitest';
import { checkClient, CHECKED_CLIENTS, readRecord, verdictsOf, versionOf } from './checked-clients.ts';

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

it('[LIAR-RECORDED] the page tells of these clients and no others', () => {
  expect(record.map(({ name }) => name)).toEqual(CHECKED_CLIENTS.map(({ name }) => name));
});
