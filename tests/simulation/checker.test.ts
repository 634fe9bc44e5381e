/** The checker itself: a history that is sound has no finding; each doctored one is found, by the promise that it breaks. */
import { decodeText, makeRecord, parseEventId, formatEventId } from '@throughline/protocol';
import type { LogRecord } from '@throughline/protocol';
import { beforeAll, describe, expect, it } from 'vitest';
import { check } from './src/checker.ts';
import type { CallRecord, ExchangeRecord, RunRecords } from './src/records-of-run.ts';
import { runSeed } from './src/run-seed.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type Doctored = Writable<RunRecords> & {
  exchanges: (ExchangeRecord & { receipts: { atMs: number; id: string; data: string }[] })[];
  calls: CallRecord[];
  runs: { token: string; tool: string; session: string; process: string; atMs: number }[];
};

let sound: RunRecords;

beforeAll(async () => {
  // One seed, on a machine that may be busy.
  const outcome = await runSeed(4, { faults: ['connection-cut'], overrides: { activeMs: 4000, instanceFailure: 0 } });
  expect(outcome.findings).toEqual([]);
  sound = outcome.records;
}, 60_000);

function rulesOf(doctor: (records: Doctored) => void): string[] {
  const records = structuredClone(sound) as Doctored;
  doctor(records);
  return [...new Set(check(records).map(({ rule }) => rule))];
}

/** A connection with at least three messages of one stream. */
function longest(records: Doctored): Doctored['exchanges'][number] {
  const found = records.exchanges.find(({ receipts }) => receipts.filter(({ data }) => data !== '').length >= 3);
  if (found === undefined) throw new Error('the run has no exchange with three messages');
  return found;
}

function dataAt(exchange: Doctored['exchanges'][number], number: number): number {
  return exchange.receipts.findIndex(({ id, data }) => data !== '' && parseEventId(id)?.seq === number);
}

const offsetOf = (id: string): number => parseEventId(id)?.offset ?? -1;

function answered(records: Doctored, tool: string): CallRecord {
  const found = records.calls.find((call) => call.tool === tool && call.outcome?.kind === 'result');
  if (found === undefined) throw new Error(`the run has no answered ${tool}`);
  return found;
}

describe('the checker', () => {
  it('[SIM-NO-GAP] finds nothing in a sound history', () => {
    expect(rulesOf(() => undefined)).toEqual([]);
  });

  it('[SIM-NO-GAP] finds a message that is missing in the middle', () => {
    expect(
      rulesOf((records) => {
        const exchange = longest(records);
        exchange.receipts.splice(dataAt(exchange, 2), 1);
      }),
    ).toContain('SIM-NO-GAP');
  });

  it('[SIM-NO-REPEAT] finds a message that came twice', () => {
    expect(
      rulesOf((records) => {
        const exchange = longest(records);
        const at = dataAt(exchange, 2);
        exchange.receipts.splice(at, 0, { ...exchange.receipts[at]! });
      }),
    ).toContain('SIM-NO-REPEAT');
  });

  it('[SIM-CHAIN] finds content that is not what the id says', () => {
    expect(
      rulesOf((records) => {
        const exchange = longest(records);
        const receipt = exchange.receipts[dataAt(exchange, 2)]!;
        receipt.data = receipt.data.replace('{', '{ ');
      }),
    ).toContain('SIM-CHAIN');
  });

  it('[SIM-SAME] finds two readers that were told different things', () => {
    expect(
      rulesOf((records) => {
        const exchange = longest(records);
        const copy = structuredClone(exchange);
        const receipt = copy.receipts[dataAt(copy, 3)]!;
        receipt.id = formatEventId({ ...parseEventId(receipt.id)!, offset: 1 });
        records.exchanges.push(copy);
      }),
    ).toContain('SIM-SAME');
  });

  it('[SIM-LOG] finds a message that the log does not hold', () => {
    expect(
      rulesOf((records) => {
        const exchange = longest(records);
        const { offset } = parseEventId(exchange.receipts[dataAt(exchange, 3)]!.id)!;
        records.partitions = records.partitions.map((archive) => ({
          ...archive,
          events: archive.events.filter((event) => event.offset !== offset),
        }));
      }),
    ).toContain('SIM-LOG');
  });

  it('[SIM-LOG] finds a message of an owner whose claim was not in force', () => {
    expect(
      rulesOf((records) => {
        const claims = records.partitions.map((archive) => ({
          ...archive,
          events: archive.events.map((event) =>
            event.headers.some(([name]) => name === 'predecessor')
              ? {
                  ...event,
                  ...makeRecord('owner.claimed', null, '{}', {
                    predecessor: '77',
                    worker: 'x',
                    epoch: records.epochs[0]!,
                  }),
                }
              : event,
          ),
        }));
        records.partitions = claims;
      }),
    ).toContain('SIM-LOG');
  });

  it('[SIM-NO-GAP] finds an id without data that moves past a message that was not sent', () => {
    expect(
      rulesOf((records) => {
        const exchange = longest(records);
        const at = dataAt(exchange, 2);
        const before = parseEventId(exchange.receipts[at - 1]!.id)!;
        const { offset } = parseEventId(exchange.receipts[at]!.id)!;
        exchange.receipts.splice(at, 0, { atMs: 0, id: formatEventId({ ...before, offset }), data: '' });
        exchange.receipts.splice(at + 1);
      }),
    ).toContain('SIM-NO-GAP');
  });

  it('[SIM-SESSION] finds a message of another session', () => {
    expect(
      rulesOf((records) => {
        const exchange = longest(records);
        for (const receipt of exchange.receipts)
          receipt.data = receipt.data.replace(/mark:[\w-]+/, 'mark:somebody-else');
      }),
    ).toContain('SIM-SESSION');
  });

  it('[SIM-SESSION] finds an id of another stream on the connection', () => {
    expect(
      rulesOf((records) => {
        const exchange = longest(records);
        const receipt = exchange.receipts[dataAt(exchange, 2)]!;
        const id = parseEventId(receipt.id)!;
        receipt.id = formatEventId({ ...id, stream: { ...id.stream, at: id.stream.at + 1 } });
      }),
    ).toContain('SIM-SESSION');
  });

  it('[SIM-REFUSED] finds data behind a refusal', () => {
    expect(
      rulesOf((records) => {
        const exchange = longest(records);
        const at = dataAt(exchange, 2);
        const id = formatEventId({ ...parseEventId(exchange.receipts[at]!.id)!, seq: 'end' });
        const error = { jsonrpc: '2.0', id: 1, error: { data: { type: 'ResumptionRejected', reason: 'gap' } } };
        exchange.receipts.splice(at, 0, { atMs: 0, id, data: JSON.stringify(error) });
      }),
    ).toContain('SIM-REFUSED');
  });

  it('[SIM-REFUSED] finds events on an answer that refuses', () => {
    expect(
      rulesOf((records) => {
        longest(records).status = 404;
      }),
    ).toContain('SIM-REFUSED');
  });

  it('[SIM-CAUSE] finds a refusal that no fault explains', () => {
    expect(
      rulesOf((records) => {
        const exchange = longest(records);
        for (const session of records.sessions) session.forged = false;
        const id = formatEventId({ ...parseEventId(exchange.receipts.at(-1)!.id)!, seq: 'end' });
        const error = { jsonrpc: '2.0', id: 1, error: { data: { type: 'ResumptionRejected', reason: 'diverged' } } };
        exchange.receipts.push({ atMs: 0, id, data: JSON.stringify(error) });
      }),
    ).toContain('SIM-CAUSE');
  });

  it('[SIM-CAUSE] finds a session that was lost without a reason', () => {
    expect(
      rulesOf((records) => {
        const [session] = records.sessions.filter(({ deleted }) => !deleted);
        session!.lost = 'GET: 404';
      }),
    ).toContain('SIM-CAUSE');
  });

  it('[SIM-ENDS] finds a call that hangs', () => {
    expect(
      rulesOf((records) => {
        const call = answered(records, 'effect');
        call.outcome = null;
        call.endedMs = null;
      }),
    ).toContain('SIM-ENDS');
  });

  it('[SIM-ENDS] finds a request without an end in the log', () => {
    expect(
      rulesOf((records) => {
        records.partitions = records.partitions.map((archive) => ({
          ...archive,
          events: archive.events.filter(({ headers }) => !headers.some(([name]) => name === 'end')),
        }));
      }),
    ).toContain('SIM-ENDS');
  });

  it('[SIM-ONCE] finds a tool with effects that ran twice', () => {
    expect(
      rulesOf((records) => {
        const { token } = answered(records, 'effect');
        records.runs.push({ ...records.runs.find((run) => run.token === token)! });
      }),
    ).toContain('SIM-ONCE');
  });

  it('[SIM-ONCE] finds a tool without effects that ran three times', () => {
    expect(
      rulesOf((records) => {
        const { token } = answered(records, 'lookup');
        const run = records.runs.find((each) => each.token === token)!;
        records.runs.push({ ...run }, { ...run });
      }),
    ).toContain('SIM-ONCE');
  });

  it('[SIM-HUMAN] finds a person who was asked twice', () => {
    expect(
      rulesOf((records) => {
        records.partitions = records.partitions.map((partition) => {
          const at = partition.events.findIndex(
            ({ value }) => value !== null && decodeText(value).includes('elicitation/create'),
          );
          return at < 0
            ? partition
            : { ...partition, events: partition.events.toSpliced(at, 0, partition.events[at]!) };
        });
      }),
    ).toContain('SIM-HUMAN');
  });

  it('[SIM-ANSWER] finds an error that says that nothing ran, though it did', () => {
    expect(
      rulesOf((records) => {
        answered(records, 'effect').outcome = { kind: 'error', code: 'OWNER_LOST', mayHaveRun: false, json: '{}' };
      }),
    ).toContain('SIM-ANSWER');
  });

  it('[SIM-ANSWER] finds a result of a tool that never ran', () => {
    expect(
      rulesOf((records) => {
        const { token } = answered(records, 'echo');
        records.runs = records.runs.filter((run) => run.token !== token);
      }),
    ).toContain('SIM-ANSWER');
  });

  it('[SIM-SAME] finds that a stream read again after all is shorter', () => {
    expect(
      rulesOf((records) => {
        const exchange = records.exchanges.findLast(
          ({ isReread, receipts, status }) => isReread && status === 200 && receipts.some(({ data }) => data !== ''),
        )!;
        exchange.receipts.pop();
      }),
    ).toContain('SIM-SAME');
  });

  it('[SIM-NEWEST] finds a connection that goes on behind a newer attachment', () => {
    expect(
      rulesOf((records) => {
        // The stream of a POST was taken by a resume; what came behind that place comes over the POST as well.
        const resumed = records.exchanges.find(
          ({ method, liveAt, receipts }) =>
            method === 'GET' &&
            liveAt !== null &&
            receipts.some(({ id, data }) => data !== '' && id.includes('.r') && offsetOf(id) > liveAt),
        )!;
        const label = resumed.receipts[0]!.id.split('.')[3];
        const posted = records.exchanges.find(
          ({ method, receipts }) => method === 'POST' && receipts[0]?.id.split('.')[3] === label,
        )!;
        posted.receipts.push(...resumed.receipts);
      }),
    ).toContain('SIM-NEWEST');
  });

  it('[SIM-PRODUCED] finds a message of a producer that was said twice, and one that was never said', async () => {
    const outcome = await runSeed(4, {
      faults: ['connection-cut'],
      overrides: { activeMs: 4000, instanceFailure: 0, says: [{ atMs: 2000, draw: 0, name: 'm1' }] },
    });
    expect(outcome.findings).toEqual([]);
    const { records } = outcome;
    expect(records.produced).toHaveLength(1);
    const rules = (partitions: RunRecords['partitions']): string[] =>
      check({ ...records, partitions }).map(({ rule }) => rule);
    const isSaid = (value: Uint8Array | null): boolean => value !== null && decodeText(value).includes('"producer"');
    const changed = (change: (events: LogRecord[], at: number) => void): RunRecords['partitions'] =>
      records.partitions.map((archive) => {
        const events = [...archive.events];
        const at = events.findIndex(({ value }) => isSaid(value));
        if (at >= 0) change(events, at);
        return { ...archive, events };
      });
    expect(rules(changed(() => undefined))).not.toContain('SIM-PRODUCED');
    expect(rules(changed((events, at) => events.splice(at, 1)))).toContain('SIM-PRODUCED');
    expect(rules(changed((events, at) => events.push({ ...events[at]!, offset: 1e6 })))).toContain('SIM-PRODUCED');
  });

  it('[SIM-BREAK] finds a break that no epoch follows, epochs that no break explains, and messages of an epoch that is over', () => {
    const broke = (atMs: number) => ({ topic: 'events', partition: 0, at: 0, atMs, isTold: true }) as const;
    expect(rulesOf((records) => void (records.breaks = [broke(2000)]))).toContain('SIM-BREAK');
    expect(rulesOf((records) => void (records.breaks = [{ ...broke(2000), isTold: false }]))).toEqual([]);
    const withEpoch = (doctor: (records: Doctored) => void = () => undefined) =>
      rulesOf((records) => {
        records.epochs = [...records.epochs, 'zzzzzzzzzz'];
        // After all that came over the old one.
        records.epochsMs = [0, sound.endMs];
        records.breaks = [broke(sound.endMs)];
        doctor(records);
      });
    expect(withEpoch()).not.toContain('SIM-BREAK');
    expect(withEpoch((records) => void (records.breaks = []))).toContain('SIM-BREAK');
    expect(withEpoch((records) => void (records.epochs = [...records.epochs, 'yyyyyyyyyy']))).toContain('SIM-BREAK');
    expect(
      withEpoch((records) => {
        const { receipts } = longest(records);
        receipts[dataAt(longest(records), 2)] = {
          ...receipts[dataAt(longest(records), 2)]!,
          atMs: sound.endMs + 31_000,
        };
      }),
    ).toContain('SIM-BREAK');
  });

  it('[SIM-GONE] finds a session that is over and still served', () => {
    expect(
      rulesOf((records) => {
        records.gone = [{ session: records.sessions[0]!.id, gateway: 'g0', status: 202 }];
      }),
    ).toEqual(['SIM-GONE']);
  });

  it('[SIM-NO-BUGS] finds what a process logged as its own failure, and a 500', () => {
    expect(
      rulesOf((records) => {
        records.bugs = ['g0.1: request failed'];
      }),
    ).toEqual(['SIM-NO-BUGS']);
    expect(
      rulesOf((records) => {
        records.exchanges.find(({ receipts }) => receipts.length === 0)!.status = 500;
      }),
    ).toContain('SIM-NO-BUGS');
  });

  it('[SIM-REFUSED] finds a message for a cursor that no server gave', () => {
    expect(
      rulesOf((records) => {
        longest(records).isHonest = false;
      }),
    ).toContain('SIM-REFUSED');
  });
});
