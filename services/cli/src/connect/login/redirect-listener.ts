/** Where the person's browser is sent when it has logged in: a page on this machine, for as long as a login lasts. SPEC: CONNECT-LOGIN-STATE. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readLoginAnswer } from './login-answer.ts';
import type { LoginAnswer } from './login-answer.ts';

export type GivenAnswer = Exclude<LoginAnswer, { kind: 'other' }>;

export interface RedirectListener extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The first answer to the question that waits. */
  readonly answer: Promise<GivenAnswer>;
  /** An answer that came another way. `false`: it is to another question. */
  take(params: URLSearchParams): boolean;
}

const HOST = '127.0.0.1';
const PATH = '/callback';
const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'",
  'Referrer-Policy': 'no-referrer',
  Connection: 'close',
};

/**
 * Rejects with what the system says of the port; 0: any that is free.
 *
 * @param onOther an answer to another question came: from a page that somebody left open, or from somebody who guesses.
 */
export async function listenForRedirect(port: number, state: string, onOther: () => void): Promise<RedirectListener> {
  const { promise: answer, resolve } = Promise.withResolvers<GivenAnswer>();
  const take = (params: URLSearchParams): boolean => {
    const given = readLoginAnswer(params, state);
    if (given.kind === 'other') {
      onOther();
      return false;
    }
    resolve(given);
    return true;
  };
  let own = '';
  const server = createServer({ requestTimeout: 5000, headersTimeout: 5000 }, (request, response) => {
    serve(request, response, own, take);
  });
  server.maxConnections = 20;
  const listening = Promise.withResolvers<undefined>();
  server.once('error', listening.reject);
  server.listen(port, HOST, () => {
    listening.resolve(undefined);
  });
  await listening.promise;
  const bound = (server.address() as AddressInfo).port;
  own = `${HOST}:${bound}`;
  return {
    url: `http://${own}${PATH}`,
    port: bound,
    answer,
    take,
    async [Symbol.asyncDispose]() {
      const { promise, resolve: closed } = Promise.withResolvers<undefined>();
      server.close(() => {
        closed(undefined);
      });
      // Whoever is in the middle of its answer gets it to its end.
      server.closeIdleConnections();
      setTimeout(() => {
        server.closeAllConnections();
      }, 200);
      await promise;
    },
  };
}

function serve(
  { method, url, headers }: IncomingMessage,
  response: ServerResponse,
  own: string,
  take: (params: URLSearchParams) => boolean,
): void {
  const say = (status: number, text: string): void => {
    response.writeHead(status, HEADERS).end(`<!doctype html><title>throughline connect</title><p>${text}</p>`);
  };
  const target = URL.parse(url ?? '', `http://${own}`);
  // A name that leads here is a page of somebody else.
  if (headers.host !== own || target?.pathname !== PATH) say(404, 'There is nothing here.');
  else if (method !== 'GET') say(405, 'Only GET is answered.');
  else if (take(target.searchParams))
    say(200, 'The answer has come. This page can be closed; what became of it is said where throughline connect runs.');
  else say(400, 'This is the answer to another login. Use the newest address that throughline connect has given.');
}
