/**
 * The least that an SSE endpoint can be: Express, and `res.write`. GET opens a stream; POST writes an event of 300 bytes
 * to all open ones, as often as its path says. Prints its URL.
 */
import type { AddressInfo } from 'node:net';
import { setImmediate as breathe } from 'node:timers/promises';
import express from 'express';
import type { Response } from 'express';
import { bareEvent } from '../lib/bare-event.ts';

const open = new Set<Response>();
const app = express();
app.get('/sse', (request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.write(': open\n\n');
  open.add(response);
  response.on('close', () => open.delete(response));
});
app.post('/send/:count', async (request, response) => {
  for (let round = 1; round <= Number(request.params.count); round += 1) {
    for (const each of open) each.write(bareEvent(round));
    await breathe();
  }
  response.end('sent');
});
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
