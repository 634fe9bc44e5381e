/** The demo server behind the official SDK's HTTP transport: `node serve-demo.ts` prints its URL. For conformance runs. */
import { createDemoServer } from '../demo/demo-server.ts';
import { serveOverSdkHttp } from './sdk-http-server.ts';

const server = await serveOverSdkHttp({ v2: createDemoServer });
process.stdout.write(`${server.url}\n`);
