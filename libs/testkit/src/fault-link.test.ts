import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { waitUntil } from './processes/wait-until.ts';
import type { FaultLink } from './fault-link.ts';
import { startFaultLink } from './fault-link.ts';

/** A socket and all that it got. */
interface End {
  readonly socket: Socket;
  got: string;
  closed: 'no' | 'end' | 'reset';
}

function watch(socket: Socket): End {
  const end: End = { socket, got: '', closed: 'no' };
  socket.on('data', (bytes: Buffer) => {
    end.got += bytes.toString();
  });
  socket.on('end', () => {
    end.closed = 'end';
  });
  socket.on('error', () => {
    end.closed = 'reset';
  });
  return end;
}

let server: Server;
let accepted: End[];
let proxy: FaultLink;
let opened: End[];
beforeEach(async () => {
  accepted = [];
  opened = [];
  server = createServer((socket) => accepted.push(watch(socket)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy = await startFaultLink({
    target: () => ({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }),
    maxConnections: 3,
  });
});
afterEach(async () => {
  await proxy.stop();
  for (const { socket } of [...opened, ...accepted]) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

const open = (): End => {
  const end = watch(connect(proxy.port, '127.0.0.1'));
  opened.push(end);
  return end;
};
const pair = async (): Promise<{ client: End; peer: End }> => {
  const before = accepted.length;
  const client = open();
  const peer = await waitUntil('the connection', () => accepted[before]);
  return { client, peer };
};
/** Both ways, so that what was sent before has come as far as it goes. */
const roundTrip = async ({ client, peer }: { client: End; peer: End }, word: string): Promise<void> => {
  client.socket.write(word);
  await waitUntil(`${word} at the server`, () => peer.got.endsWith(word));
  peer.socket.write(word);
  await waitUntil(`${word} at the client`, () => client.got.endsWith(word));
};

describe('startFaultLink', () => {
  it('[FLT-PROXY] bytes pass both ways, and so does the end of either side', async () => {
    const { client, peer } = await pair();
    await roundTrip({ client, peer }, 'hello');
    client.socket.end('bye');
    await waitUntil('the end', () => peer.closed === 'end');
    expect(peer.got).toBe('hellobye');
    await waitUntil('no connection', () => proxy.connections === 0);
  });

  it('[FLT-PROXY] cut one way, that way is silent with its sockets open and the other goes on; healing resets what lost bytes', async () => {
    const both = await pair();
    await roundTrip(both, 'a');
    proxy.swallow('to-client');
    both.client.socket.write('b');
    await waitUntil('the way that is not cut', () => both.peer.got === 'ab');
    both.peer.socket.write('lost');
    const late = await pair();
    late.client.socket.write('c');
    await waitUntil('the way that is not cut, on a new connection', () => late.peer.got === 'c');
    late.peer.socket.end();
    both.client.socket.write('d');
    await waitUntil('more on that way', () => both.peer.got === 'abd');
    expect([both.client.got, both.client.closed, late.client.got, late.client.closed]).toEqual(['a', 'no', '', 'no']);
    await proxy.heal();
    await waitUntil('the reset', () => both.client.closed === 'reset' && late.client.closed === 'reset');
    await roundTrip(await pair(), 'again');
  });

  it('[FLT-PROXY] held bytes arrive after healing, whole and in order, on connections that live on', async () => {
    const both = await pair();
    await roundTrip(both, 'a');
    proxy.hold('both');
    both.client.socket.write('b');
    both.client.socket.write('c');
    both.peer.socket.write('x');
    const other = open();
    other.socket.write('z');
    await waitUntil('the new connection', () => accepted.length === 2);
    expect([both.peer.got, both.client.got, accepted[1]?.got]).toEqual(['a', 'a', '']);
    await proxy.heal();
    await waitUntil('what was held', () => both.peer.got === 'abc' && both.client.got === 'ax');
    await waitUntil('what was held at the beginning', () => accepted[1]?.got === 'z');
  });

  it('[FLT-PROXY] after the messages that it was told nothing passes either way, however they are cut into chunks; healing resets what lost bytes', async () => {
    const frame = (text: string): string => `\0\0\0${String.fromCharCode(text.length)}${text}`;
    const both = await pair();
    proxy.stopAfter(3);
    for (const byte of frame('one')) both.client.socket.write(byte);
    await waitUntil('the first', () => both.peer.got === frame('one'));
    both.peer.socket.write(frame('two'));
    await waitUntil('the second', () => both.client.got === frame('two'));
    both.client.socket.write(frame('three') + frame('four'));
    await waitUntil('the third', () => proxy.messages === 3);
    await waitUntil('what passed', () => both.peer.got === frame('one') + frame('three'));
    const late = await pair();
    late.client.socket.write(frame('five'));
    both.peer.socket.end();
    expect([both.client.closed, late.peer.got, proxy.messages]).toEqual(['no', '', 3]);
    await proxy.heal();
    await waitUntil('the reset', () => both.client.closed === 'reset');
  });

  it('[FLT-PROXY] refused, what is open goes on and what is new is refused until it is healed', async () => {
    const both = await pair();
    await proxy.refuse();
    const refused = open();
    await waitUntil('the refusal', () => refused.closed === 'reset');
    await roundTrip(both, 'still');
    await proxy.heal();
    await roundTrip(await pair(), 'new');
  });

  it('[FLT-PROXY] a reset ends all that is open, and nothing that comes after', async () => {
    const both = await pair();
    await roundTrip(both, 'a');
    proxy.reset();
    await waitUntil('both resets', () => both.client.closed === 'reset' && both.peer.closed === 'reset');
    await roundTrip(await pair(), 'b');
  });

  it('[FLT-PROXY] more connections than its bound are reset, and stopped it holds none', async () => {
    await pair();
    await pair();
    const third = await pair();
    const fourth = open();
    await waitUntil('the reset', () => fourth.closed === 'reset');
    await proxy.stop();
    await waitUntil('the others', () => third.client.closed === 'reset');
    expect(proxy.connections).toBe(0);
    const late = open();
    await waitUntil('the refusal', () => late.closed === 'reset');
  });
});
