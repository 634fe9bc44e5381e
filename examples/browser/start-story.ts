/** All that the page needs: two gateways and a worker on one log file behind one address, and the page itself. */
import { fileURLToPath } from 'node:url';
import { startBalancer, startCluster } from '@throughline/testkit/processes';
import { serveModule } from '../story/serve-module.ts';
import { servePage } from './serve-page.ts';

const SERVER = fileURLToPath(new URL('./server.ts', import.meta.url));

export interface BrowserStory extends AsyncDisposable {
  /** Of the page. */
  readonly pageUrl: string;
  /** Of the MCP endpoint, which is another origin. */
  readonly mcpUrl: string;
  /** Kills the gateway that serves, with SIGKILL; the other one serves from then on, and another process takes its place. */
  killGateway(): Promise<void>;
  logs(): string;
}

/** @param onKill is told the process that was killed. */
export async function startBrowserStory(onKill: (pid: number) => void = () => undefined): Promise<BrowserStory> {
  await using started = new AsyncDisposableStack();
  const cluster = started.use(
    await startCluster({ ...serveModule('steps', SERVER), workers: 1, gatewayArgs: ['--retry', '500ms'] }),
  );
  let serving = 0;
  const balancer = started.use(await startBalancer(() => cluster.gateways.filter((_, place) => place === serving)));
  let killing: Promise<void> | null = null;
  const killServing = async (): Promise<void> => {
    const place = serving;
    const gateway = cluster.gateways[place];
    serving = 1 - place;
    await gateway?.kill();
    onKill(gateway?.pid ?? 0);
    await cluster.startGateway(place);
  };
  const killGateway = async (): Promise<void> => {
    killing ??= killServing().finally(() => {
      killing = null;
    });
    await killing;
  };
  const page = started.use(await servePage({ url: balancer.url, kill: killGateway }));
  const kept = started.move();
  return {
    pageUrl: page.url,
    mcpUrl: balancer.url,
    killGateway,
    logs: () => cluster.logs(),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
