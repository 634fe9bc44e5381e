/** What is not promised about streams: each limit of docs/reference/guarantees.md that a gateway shows. */
import { encodeText } from '@throughline/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { progress, result } from './testing/backend.ts';
import { call, createRig, dataOf } from './testing/core-rig.ts';
import type { Peer, Rig } from './testing/core-rig.ts';
import { lastIdOf } from './testing/sse-reading.ts';

let rig: Rig;
let peer: Peer;
let session: string;
beforeEach(async () => {
  rig = await createRig();
  await rig.backend.startWorker();
  peer = await rig.gateway();
  session = await rig.open(peer);
});
afterEach(() => rig.stop());

async function newestRequest(): Promise<{ kind: 'request'; at: number }> {
  return { kind: 'request', at: (await rig.backend.inbound()).at(-1)?.offset ?? -1 };
}

describe('limits of the promise', () => {
  it('[LIM-AGAIN] a client that resumes from an id before the last it got is given again what came after that id', async () => {
    const post = await peer.post(session, call('c'));
    const stream = await newestRequest();
    for (const step of [1, 2, 3]) await rig.backend.say(session, stream, progress(step));
    await rig.time.settle();
    const [first] = post.messages();
    const resumed = await peer.get(session, first?.id);
    expect(dataOf(resumed)).toEqual([progress(2), progress(3)]);
  });

  it('[LIM-TWO-CLIENTS] two clients of one session take the standalone stream from each other: no message comes to both', async () => {
    const one = await peer.get(session);
    await rig.backend.say(session, 's', progress(1));
    await rig.time.settle();
    const two = await peer.get(session, lastIdOf(one.sink.text));
    await rig.backend.say(session, 's', progress(2));
    await rig.time.settle();
    expect([dataOf(one), dataOf(two)]).toEqual([[progress(1)], [progress(2)]]);
    expect(one.sink.isEnded).toBe(true);
  });

  it('[LIM-ORDER] streams of a session are not ordered among each other: each is read at its own pace', async () => {
    const post = await peer.post(session, call('c'), { isBlocked: true });
    const stream = await newestRequest();
    await rig.backend.say(session, stream, progress(1));
    const standalone = await peer.get(session);
    await rig.backend.say(session, 's', progress(2));
    await rig.time.settle();
    // What was said second is there, what was said first is not.
    expect([dataOf(post), dataOf(standalone)]).toEqual([[], [progress(2)]]);
  });

  it('[LIM-WINDOW] what is older than the log holds is refused, not made up for', async () => {
    const post = await peer.post(session, call('c'));
    const stream = await newestRequest();
    const offset = await rig.backend.say(session, stream, progress(1));
    await rig.time.settle();
    const id = lastIdOf(post.sink.text);
    await rig.backend.say(session, stream, result('c'), { end: true });
    await rig.time.settle();
    rig.backend.log.controls.evictBefore({ topic: 'events', partition: 0 }, offset + 1);
    const resumed = await (await rig.gateway()).get(session, id);
    await rig.time.run(resumed.done);
    expect(dataOf(resumed)).toMatchObject([{ error: { data: { type: 'ResumptionRejected', reason: 'gap' } } }]);
  });

  it('[GW-VANISHED] a call whose request was lost with a truncation that nobody saw ends with OWNER_LOST when its stream is quiet', async () => {
    peer = await rig.gateway({ keepAliveMs: 15_000 });
    const post = await peer.post(session, call('c'));
    const { at } = await newestRequest();
    await rig.time.run(peer.core.stop());
    const other = await rig.gateway({ keepAliveMs: 15_000 });
    rig.backend.log.controls.truncate({ topic: 'inbound', partition: 0 }, at);
    const resumed = await other.get(session, lastIdOf(post.sink.text));
    // Nothing stands there yet: that alone says nothing.
    await rig.time.advance(15_000);
    expect(resumed.sink.isEnded).toBe(false);
    const elsewhere = await rig.open(other);
    expect((await other.post(elsewhere, call('d'))).sink.status).toBe(200);
    await rig.time.advance(15_000);
    await rig.time.run(resumed.done);
    expect(dataOf(resumed)).toMatchObject([{ id: 'c', error: { data: { code: 'OWNER_LOST', mayHaveRun: true } } }]);
  });

  it('[GW-VANISHED] a call whose request the log holds, or retention took, goes on', async () => {
    peer = await rig.gateway({ keepAliveMs: 15_000 });
    const post = await peer.post(session, call('c'));
    const stream = await newestRequest();
    const resumed = [await peer.get(session, lastIdOf(post.sink.text))];
    await rig.time.advance(40_000);
    await rig.backend.log.append({ topic: 'inbound', partition: 0 }, [
      { key: encodeText('other'), value: encodeText('{}'), headers: [] },
    ]);
    rig.backend.log.controls.evictBefore({ topic: 'inbound', partition: 0 }, stream.at + 1);
    resumed.push(await (await rig.gateway({ keepAliveMs: 15_000 })).get(session, lastIdOf(post.sink.text)));
    await rig.time.advance(40_000);
    expect(resumed[1]?.sink.isEnded).toBe(false);
    await rig.backend.say(session, stream, result('c'), { end: true });
    await rig.time.settle();
    expect(dataOf(resumed[1]!)).toEqual([result('c')]);
  });

  it('[LIM-REGROWN] after a truncation that regrew unseen, cursors inside the cut are refused one by one, and those before it go on without what was lost', async () => {
    const post = await peer.post(session, call('c'));
    const stream = await newestRequest();
    await rig.backend.say(session, stream, progress(1));
    const cut = await rig.backend.say(session, stream, progress(2));
    await rig.time.settle();
    const [before, inside] = post.messages().map(({ id }) => id);
    // Whoever knew of it is gone before a mark tells of it.
    await rig.time.run(peer.core.stop());
    rig.backend.log.controls.truncate({ topic: 'events', partition: 0 }, cut);
    for (const step of [7, 8, 9]) await rig.backend.say(session, stream, progress(step));
    const other = await rig.gateway();
    const resumed = await other.get(session, before);
    expect(dataOf(resumed)).toEqual([progress(7), progress(8), progress(9)]);
    const refused = await other.get(session, inside);
    await rig.time.run(refused.done);
    expect(dataOf(refused)).toMatchObject([{ error: { data: { type: 'ResumptionRejected', reason: 'diverged' } } }]);
  });

  it('[LIM-SESSIONS] when `sessions` alone is made anew and nobody is left who had read it, an ended session is answered again', async () => {
    await peer.send('DELETE', null, { session });
    expect((await peer.post(session, call('c'))).sink.status).toBe(404);
    await rig.time.run(peer.core.stop());
    rig.backend.log.controls.recreate('sessions');
    const other = await rig.gateway();
    expect((await other.post(session, call('c'))).sink.status).toBe(200);
  });
});
