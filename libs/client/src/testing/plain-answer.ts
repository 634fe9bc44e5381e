/** Answers that are no stream. */
import type { ServerResponse } from 'node:http';

export function answerStatus(
  response: ServerResponse,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message } }));
}

/** A proxy's page, of the kind that comes with status 200. */
export function answerHtmlPage(response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
  response.end('<!doctype html>\n<title>Please wait</title>\n<p>data: {"this":"is no event"}</p>\n\n');
}
