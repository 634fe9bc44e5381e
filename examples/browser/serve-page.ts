/** The files of the page, over HTTP: the HTML as it is, the script bundled for browsers. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

export interface PageOptions {
  /** The MCP endpoint that the page is told. */
  readonly url: string;
  /** Called for the button of the page that kills the gateway. */
  kill(): Promise<void>;
}

export interface ServedPage extends AsyncDisposable {
  readonly url: string;
}

export async function servePage({ url, kill }: PageOptions): Promise<ServedPage> {
  const html = readFileSync(new URL('./page.html', import.meta.url));
  const script = await bundlePage();
  const server = createServer((request, response) => {
    const send = (type: string, body: string | Uint8Array): void => {
      response.writeHead(200, { 'Content-Type': type, 'Cache-Control': 'no-store' }).end(body);
    };
    switch (`${request.method ?? ''} ${request.url ?? ''}`) {
      case 'GET /':
        send('text/html; charset=utf-8', html);
        return;
      case 'GET /page.js':
        send('text/javascript; charset=utf-8', script);
        return;
      case 'GET /settings.json':
        send('application/json', JSON.stringify({ url }));
        return;
      case 'POST /kill':
        kill().then(
          () => response.writeHead(204).end(),
          () => response.writeHead(500).end(),
        );
        return;
      default:
        response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      });
    },
  };
}

async function bundlePage(): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('./page.mjs', import.meta.url))],
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    conditions: ['@throughline/source'],
    logLevel: 'warning',
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error('the page could not be bundled');
  return file.contents;
}
