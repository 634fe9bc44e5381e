/** Health and metrics, on a port of their own. SPEC: GW-ADMIN, GW-ADMIN-HOST. */
import type { IncomingMessage, ServerResponse } from 'node:http';

export interface AdminOptions {
  isReady(): boolean;
  /** Whether a request with this `Host` is answered; it is asked before anything else. */
  isAllowedHost(host: string | undefined): boolean;
  /** Prometheus text. */
  renderMetrics(): Promise<string>;
}

export function createAdminListener(
  options: AdminOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  const answer = (response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void => {
    response.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-store' }).end(text);
  };
  return (request, response) => {
    if (!options.isAllowedHost(request.headers.host)) {
      answer(response, 403, 'the Host header names a host that is not served here: use its IP address\n');
      return;
    }
    switch ((request.url ?? '').split('?')[0]) {
      case '/livez':
        answer(response, 200, 'ok\n');
        return;
      case '/readyz':
        if (options.isReady()) answer(response, 200, 'ok\n');
        else answer(response, 503, 'not ready\n');
        return;
      case '/metrics':
        options.renderMetrics().then(
          (text) => {
            answer(response, 200, text, 'text/plain; version=0.0.4; charset=utf-8');
          },
          () => {
            answer(response, 500, 'metrics failed\n');
          },
        );
        return;
      default:
        answer(response, 404, 'served here: /livez /readyz /metrics\n');
    }
  };
}
