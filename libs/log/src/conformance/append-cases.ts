import { encodeText } from '@throughline/protocol';
import type { Offset, RecordInput } from '@throughline/protocol';
import { expect, it } from 'vitest';
import type { GetBench } from './harness.ts';
import { endOf, EVENTS, readAll, showInput, textOf, textRecord } from './records.ts';

export function appendCases(bench: GetBench): void {
  it('[LOG-ORDER] a reader sees the records of a partition in the order of their acks, at the offsets acked', async () => {
    const { log } = bench();
    const from = await endOf(log, EVENTS);
    const acked: [Offset, string][] = [];
    for (let index = 0; index < 20; index++) {
      const { offsets } = await log.append(EVENTS, [textRecord(`record ${index}`)]);
      acked.push([offsets[0]!, `record ${index}`]);
    }
    const read = await readAll(log, EVENTS, from);
    expect(read.map((record) => [record.offset, textOf(record)])).toEqual(acked);
    expect(acked.map(([offset]) => offset)).toEqual(acked.map(([offset]) => offset).sort((a, b) => a - b));
  });

  it('[LOG-ACK] an append that resolved is returned at once to any handle, also to one that waits for nothing', async () => {
    const { harness, log } = bench();
    const other = await harness.open();
    for (let index = 0; index < 10; index++) {
      const { offsets, timestampMs } = await log.append(EVENTS, [textRecord(`hello ${index}`)]);
      const seen = await other.read(EVENTS, offsets[0]!);
      expect(seen.records.map((record) => [record.offset, textOf(record), record.timestampMs])).toEqual([
        [offsets[0], `hello ${index}`, timestampMs],
      ]);
      expect(await endOf(other, EVENTS)).toBeGreaterThan(offsets[0]!);
    }
  });

  it('[LOG-ATOMIC] the records of one append have consecutive offsets while other handles append between', async () => {
    const { harness, log } = bench();
    const other = await harness.open();
    const from = await endOf(log, EVENTS);
    const appends = [log, other].flatMap((handle, who) =>
      Array.from({ length: 15 }, async (_, index) => {
        const names = [0, 1, 2].map((part) => `${who}.${index}.${part}`);
        const appended = await handle.append(
          EVENTS,
          names.map((name) => textRecord(name)),
        );
        return { names, appended };
      }),
    );
    const done = await Promise.all(appends);
    const byOffset = new Map((await readAll(log, EVENTS, from)).map((record) => [record.offset, textOf(record)]));
    for (const { names, appended } of done) {
      const first = appended.offsets[0]!;
      expect(appended.offsets).toEqual([first, first + 1, first + 2]);
      expect(appended.offsets.map((offset) => byOffset.get(offset))).toEqual(names);
    }
  });

  it('[LOG-CALL-ORDER] concurrent appends of one handle to one partition keep the order of the calls', async () => {
    const { harness, log } = bench();
    const handles = [log, await harness.open(), await harness.open()];
    const from = await endOf(log, EVENTS);
    await Promise.all(
      handles.flatMap((handle, who) =>
        Array.from({ length: 100 }, (_, index) => handle.append(EVENTS, [textRecord(String(index), String(who))])),
      ),
    );
    const read = await readAll(log, EVENTS, from);
    expect(read).toHaveLength(300);
    for (const who of ['0', '1', '2']) {
      const own = read.filter((record) => new TextDecoder().decode(record.key) === who).map(textOf);
      expect(own).toEqual(Array.from({ length: 100 }, (_, index) => String(index)));
    }
  });

  it('[LOG-OFFSET-ONCE] appends of several handles at once are all acked at distinct offsets', async () => {
    const { harness, log } = bench();
    const handles = [log, await harness.open(), await harness.open()];
    const from = await endOf(log, EVENTS);
    const acked = await Promise.all(
      handles.flatMap((handle, who) =>
        Array.from({ length: 60 }, async (_, index) => {
          const { offsets } = await handle.append(EVENTS, [textRecord(`${who}/${index}`)]);
          return [offsets[0]!, `${who}/${index}`] as const;
        }),
      ),
    );
    const read = await readAll(log, EVENTS, from);
    expect(new Map(read.map((record) => [record.offset, textOf(record)]))).toEqual(new Map(acked));
    expect(read).toHaveLength(180);
  });

  it('[LOG-PARTITIONS] partitions and topics are sequences of their own', async () => {
    const { log } = bench();
    const refs = [
      { topic: 'inbound', partition: 0 },
      { topic: 'inbound', partition: 1 },
      { topic: 'events', partition: 0 },
      { topic: 'dead-letter', partition: 0 },
      { topic: 'meta', partition: 0 },
      { topic: 'sessions', partition: 1 },
    ] as const;
    const starts = await Promise.all(refs.map((ref) => endOf(log, ref)));
    await Promise.all(refs.map((ref) => log.append(ref, [textRecord(`${ref.topic} ${ref.partition}`)])));
    for (const [index, ref] of refs.entries()) {
      const read = await readAll(log, ref, starts[index]!);
      expect(read.map(textOf)).toEqual([`${ref.topic} ${ref.partition}`]);
    }
    await expect(log.append({ topic: 'meta', partition: 1 }, [textRecord('x')])).rejects.toThrow(RangeError);
    await expect(log.read({ topic: 'events', partition: -1 }, 0)).rejects.toThrow(RangeError);
  });

  it('[LOG-BYTES] a record is read with the bytes it was appended with', async () => {
    const { harness, log } = bench();
    const other = await harness.open();
    const from = await endOf(log, EVENTS);
    const all = Uint8Array.from({ length: 256 }, (_, index) => index);
    const empty = new Uint8Array(0);
    const invalid = Uint8Array.of(0xc3, 0x28, 0xff, 0xfe, 0x80);
    const inputs: RecordInput[] = [
      { key: all, value: all, headers: [['all', all]] },
      { key: empty, value: encodeText('empty key'), headers: [] },
      { key: null, value: encodeText('no key'), headers: [] },
      { key: encodeText('empty value'), value: empty, headers: [] },
      { key: encodeText('no value'), value: null, headers: [] },
      { key: null, value: null, headers: [] },
      { key: invalid, value: invalid, headers: [['not-utf8', invalid]] },
      { key: Uint8Array.of(0), value: Uint8Array.of(0, 0, 0xff), headers: [['nul', Uint8Array.of(0)]] },
      {
        key: encodeText('headers'),
        value: encodeText('order, repeats, empty'),
        headers: [
          ['b', encodeText('1')],
          ['a', encodeText('2')],
          ['b', encodeText('3')],
          ['a', empty],
          ['z', encodeText('{"json":"\\u0000"}')],
        ],
      },
      { key: encodeText('Schlüssel 🔑'), value: encodeText('{"text":"\u2028 naïve 漢字"}'), headers: [] },
    ];
    await log.append(EVENTS, inputs);
    const expected = inputs.map(showInput);
    for (const handle of [log, other]) expect((await readAll(handle, EVENTS, from)).map(showInput)).toEqual(expected);
  });

  it('[LOG-BYTES] bytes that a caller changes after the ack are not changed in the log', async () => {
    const { log } = bench();
    const value = encodeText('before');
    const from = await endOf(log, EVENTS);
    const waiting = log.read(EVENTS, from, { waitMs: 5000 });
    await log.append(EVENTS, [{ key: null, value, headers: [] }]);
    value.fill(0);
    expect((await waiting).records.map(textOf)).toEqual(['before']);
    expect((await readAll(log, EVENTS, from)).map(textOf)).toEqual(['before']);
  });

  it('[LOG-LARGE] a record of 4 MiB is taken and read as it is, in catch-up and by one who waits for it', async () => {
    const { harness, log } = bench();
    const other = await harness.open();
    const value = new Uint8Array(4 * 1024 * 1024);
    for (let index = 0; index < value.length; index++) value[index] = (index * 31 + (index >> 8)) & 0xff;
    const input: RecordInput = { key: encodeText('large'), value, headers: [['v', encodeText('1')]] };
    const from = await endOf(log, EVENTS);
    const waiting = [log, other].map((handle) => handle.read(EVENTS, from, { waitMs: 15_000 }));
    await log.append(EVENTS, [input, textRecord('after')]);
    for (const batch of await Promise.all(waiting))
      expect(batch.records.slice(0, 1).map(showInput)).toEqual([showInput(input)]);
    for (const handle of [log, other])
      expect((await readAll(handle, EVENTS, from)).map(showInput)).toEqual([input, textRecord('after')].map(showInput));
  });

  it('[LOG-TOO-LARGE] an append with a record above the limit is refused and nothing of it is appended', async () => {
    const { log } = bench();
    const from = await endOf(log, EVENTS);
    const large = { key: null, value: new Uint8Array(log.description.maxRecordBytes + 1), headers: [] };
    await expect(log.append(EVENTS, [textRecord('small'), large])).rejects.toMatchObject({
      code: 'APPEND_REFUSED',
      details: { reason: 'too-large' },
    });
    await log.append(EVENTS, [textRecord('next')]);
    expect((await readAll(log, EVENTS, from)).map(textOf)).toEqual(['next']);
  });

  it('[LOG-TIMESTAMP] timestamps are those of the acks and never go back within a partition', async () => {
    const { harness, log } = bench();
    const handles = [log, await harness.open()];
    const from = await endOf(log, EVENTS);
    const acks = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const { offsets, timestampMs } = await handles[index % 2]!.append(EVENTS, [textRecord(String(index))]);
        return [offsets[0]!, timestampMs] as const;
      }),
    );
    const read = await readAll(log, EVENTS, from);
    expect(new Map(read.map((record) => [record.offset, record.timestampMs]))).toEqual(new Map(acks));
    const times = read.map((record) => record.timestampMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });
}
