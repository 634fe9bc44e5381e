/** Two gateways behind HAProxy as infra/proxies has it, and a worker with the demo server. */
import { startCluster } from '@throughline/testkit/processes';
import type { MakeLogPlace } from '@throughline/testkit/processes';
import type { ProxyProgram } from '../../infra/proxies/find-proxy.ts';
import { drawGatewayPorts, startProxy } from '../../infra/proxies/start-proxy.ts';

export interface InteropWorld extends AsyncDisposable {
  /** The MCP endpoint, through HAProxy. */
  readonly url: string;
  /** SIGKILL or SIGTERM, and another one in its place. Resolves when that is ready. */
  replaceGateway(place: number, how: 'kill' | 'stop'): Promise<void>;
  /** Of all processes. */
  logs(): string;
}

export async function startInteropWorld(log: MakeLogPlace, haproxy: ProxyProgram): Promise<InteropWorld> {
  await using starting = new AsyncDisposableStack();
  const gateways = await drawGatewayPorts();
  const cluster = starting.use(await startCluster({ log, workers: 1, gatewayPorts: gateways }));
  const proxy = starting.use(await startProxy(haproxy, { gateways }));
  const running = starting.move();
  return {
    url: proxy.url,
    async replaceGateway(place, how) {
      await cluster.gateways[place]?.[how]();
      await cluster.startGateway(place);
    },
    logs: () => `${cluster.logs()}\n— haproxy\n${proxy.logs()}`,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
