/** Ports that stay free while their server is down. */
import { createServer } from 'node:net';

export const LOOPBACK = '127.0.0.1';

const LOWEST = 20_000;
const COUNT = 10_000;
const ATTEMPTS = 200;
const given = new Set<number>();

/**
 * Below the range that systems give to outgoing connections and to port 0, so that nothing takes it while a broker is
 * down. No port is given twice by one process.
 */
export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = LOWEST + Math.floor(Math.random() * COUNT);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`no free port between ${LOWEST} and ${LOWEST + COUNT}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => {
      resolve(false);
    });
    // On every address: engines publish on all of them.
    server.listen(port, () => {
      server.close(() => {
        resolve(true);
      });
    });
  });
}
