import { RawClient } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { runClientCheck } from './client-check.ts';
import type { ClientCheckOptions, ConnectClient } from './client-check.ts';
import { formatClientCheck } from './format-client-check.ts';
import { textsOf } from './wire-rig.ts';

/** Takes whatever comes, and resumes as long as there is an id and no result. */
const naive: ConnectClient = async (url, reports) => {
  const client = await RawClient.connect(url);
  return {
    async callTool(name, args) {
      let answer = await client.callTool(url, name, args);
      for (;;) {
        await answer.closed;
        if (answer.status !== 200) throw new Error(`status ${answer.status}`);
        const texts = textsOf(answer.items);
        const isDone = answer.events().at(-1)?.data.includes('"result"') === true;
        for (const text of isDone ? texts.slice(0, -1) : texts) reports.event(text);
        if (isDone) return texts.at(-1) ?? '';
        const cursor = answer.lastId();
        if (cursor === undefined) throw new Error('no id to resume at');
        answer = await client.resume(url, cursor);
      }
    },
    close: () => undefined,
  };
};

/** Nothing hangs that is waited for so long, on a busy machine as well. */
const PATIENT_MS = 15_000;

async function verdictsOf(connect: ConnectClient, options: ClientCheckOptions): Promise<Record<string, string>> {
  const { runs } = await runClientCheck(connect, { dialects: ['throughline'], boundMs: PATIENT_MS, ...options });
  return Object.fromEntries(runs.map(({ fault, verdict }) => [fault, verdict]));
}

describe('a check of a client', () => {
  it('[LIAR-CHECK] shows where a client that takes whatever comes is fooled, and where it is not', async () => {
    const faults = ['crlf', 'gap-in-ids', 'epoch-changed', 'repeated-boundary', 'status-409', 'post-404'] as const;
    const report = await runClientCheck(naive, { faults, dialects: ['throughline', 'opaque'], boundMs: PATIENT_MS });
    expect(formatClientCheck(report)).toBe(
      [
        '| fault | throughline | opaque |',
        '| --- | --- | --- |',
        '| crlf | exact | exact |',
        '| gap-in-ids | **fooled** | **fooled** |',
        '| epoch-changed | **fooled** | **fooled** |',
        '| repeated-boundary | **fooled** | **fooled** |',
        '| status-409 | failed | failed |',
        '| post-404 | failed | failed |',
      ].join('\n'),
    );
    expect(report.wrong.map(({ fault }) => fault)).toEqual(
      report.runs.filter(({ isRight }) => !isRight).map(({ fault }) => fault),
    );
    expect(report.runs.find(({ fault }) => fault === 'crlf')).toMatchObject({ wasShown: true, isUsableAfter: true });
    expect(report.runs.find(({ fault }) => fault === 'post-404')).toMatchObject({
      wasShown: true,
      isUsableAfter: false,
    });
  });

  it('[LIAR-CHECK] a client that does not connect, hangs or does not close holds up nobody', async () => {
    const never = (): Promise<never> => Promise.withResolvers<never>().promise;
    const faults = ['bom'] as const;
    const options = { faults, boundMs: 200 };
    expect(await verdictsOf(() => Promise.reject(new Error('no')), options)).toEqual({ bom: 'failed' });
    expect(await verdictsOf(never, options)).toEqual({ bom: 'hangs' });
    expect(await verdictsOf(async () => ({ callTool: never, close: never }), options)).toEqual({ bom: 'hangs' });
  });

  it('[LIAR-CHECK] a client that never met the fault is not right, whatever it delivered', async () => {
    const lucky: ConnectClient = async (_url, reports) => ({
      async callTool(_name, { to }) {
        for (let n = 1; n <= Number(to); n++) reports.event(`event ${n}: naïve 漢字 ✓`);
        return `counted to ${String(to)}`;
      },
      close: () => undefined,
    });
    const { runs, wrong } = await runClientCheck(lucky, { faults: ['bom', 'reordered'], dialects: ['opaque'] });
    expect(runs.map(({ fault, wasShown }) => [fault, wasShown])).toEqual([
      ['bom', false],
      ['reordered', false],
    ]);
    expect(wrong).toHaveLength(2);
  });

  it('[LIAR-CHECK] a call that rejects with data.type ResumptionRejected says by itself that it refuses', async () => {
    const refusing: ConnectClient = async (url, reports) => {
      const client = await naive(url, { ...reports, event: () => undefined });
      return {
        ...client,
        async callTool(name, args) {
          if (name === 'echo') return await client.callTool(name, args);
          await client.callTool(name, args);
          throw Object.assign(new Error('refused'), { data: { type: 'ResumptionRejected', reason: 'gap' } });
        },
      };
    };
    expect(await verdictsOf(refusing, { faults: ['gap-in-ids'] })).toEqual({ 'gap-in-ids': 'refused' });
  });

  it('[LIAR-CHECK] a call that was run twice is seen, whatever came of it', async () => {
    const twice: ConnectClient = async (url, reports) => {
      const client = await naive(url, reports);
      const blind = await naive(url, { ...reports, event: () => undefined });
      return {
        ...client,
        async callTool(name, args) {
          await blind.callTool(name, args);
          return await client.callTool(name, args);
        },
      };
    };
    expect(await verdictsOf(twice, { faults: ['crlf'] })).toEqual({ crlf: 'ran-twice' });
  });

  it('[LIAR-CHECK] on the standalone stream the same faults are met by who listens', async () => {
    const listener: ConnectClient = async (url, reports) => {
      const client = await RawClient.connect(url);
      const streams = [await client.listen(url)];
      const follow = async (): Promise<void> => {
        for (;;) {
          const current = streams.at(-1)!;
          await current.closed;
          const cursor = current.lastId();
          if (cursor === undefined || current.status !== 200) return;
          streams.push(await client.resume(url, cursor));
        }
      };
      // At the end the server is gone before this client notices.
      follow().catch(() => undefined);
      let told = 0;
      const tell = setInterval(() => {
        const texts = textsOf(streams.flatMap(({ items }) => items));
        for (; told < texts.length; told++) reports.event(texts[told]);
      }, 5);
      return {
        async callTool(name, args) {
          const answer = await client.callTool(url, name, args);
          await answer.closed;
          return textsOf(answer.items).at(-1) ?? '';
        },
        close() {
          clearInterval(tell);
          for (const stream of streams) stream.cut();
        },
      };
    };
    const stream = 'standalone';
    expect(await verdictsOf(listener, { stream, faults: ['bom', 'replay-from-zero'] })).toEqual({
      bom: 'exact',
      'replay-from-zero': 'fooled',
    });
    const faults = ['status-404', 'post-404', 'answer-on-wrong-stream'] as const;
    expect(await verdictsOf(listener, { stream, faults, boundMs: 1500 })).toEqual({ 'status-404': 'hangs' });
  });
});
