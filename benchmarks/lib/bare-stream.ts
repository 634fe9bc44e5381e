/** An event stream of the Express peer, as bare as it is. */
import { get } from 'node:http';
import type { IncomingMessage } from 'node:http';

/** Resolves when its first bytes are here; `onBytes` is told of all. */
export function openBareStream(url: string, onBytes: (count: number) => void): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = get(`${url}/sse`, { agent: false }, (response) => {
      response.on('error', () => undefined);
      response.on('data', (chunk: Buffer) => {
        onBytes(chunk.length);
        resolve(response);
      });
    });
    sent.on('error', reject);
  });
}
