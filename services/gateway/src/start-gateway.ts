/** The gateway role: core, MCP endpoint and admin port, started and stopped together. */
import type { AccessChange } from './access-change.ts';
import type { GatewayConfig } from './config.ts';
import type { GatewayDeps } from './context.ts';
import { startGatewayCore } from './core.ts';
import { listen } from './http/listen.ts';
import type { Listening } from './http/listen.ts';
import { createMcpApp } from './http/mcp-app.ts';
import { startAdmin } from './http/start-admin.ts';

const SPARE_SOCKETS = 1000;

export interface StartGatewayDeps extends GatewayDeps {
  renderMetrics(): Promise<string>;
}

export interface Gateway {
  /** `http://host:port`, with the real port. */
  readonly url: string;
  readonly adminUrl: string | null;
  /** Uses what a file holds now that was read again, from now on. */
  changeAccess(change: AccessChange): void;
  /** Looks at the files of TLS now, not only every 10 s. */
  readFilesNow(): void;
  /** `drain` (default): clients are asked to reconnect elsewhere, spread over the drain time. Idempotent. */
  stop(options?: { readonly drain?: boolean }): Promise<void>;
}

/** Resolves when it is ready. Errors: `ListenError` (`ADDRESS_IN_USE`, `ADDRESS_REFUSED`), or that the log does not answer; nothing is left half-started. */
export async function startGateway(config: GatewayConfig, deps: StartGatewayDeps): Promise<Gateway> {
  const core = await startGatewayCore(config, deps);
  const open: Listening[] = [];
  try {
    const { clock, logger } = deps;
    const onError = (error: Error): void => {
      logger.error('a socket could not be accepted', { error: error.message });
    };
    // Every open stream may have a second socket that posts; the rest is for those who only post.
    const maxSockets = 2 * config.maxConnections + SPARE_SOCKETS;
    const mcp = await listen(
      {
        ...config.listen,
        flag: '--listen',
        clock,
        maxSockets,
        onError,
        ...(config.tls === null ? {} : { tls: { files: config.tls, logger } }),
      },
      createMcpApp(config, core, deps),
    );
    open.push(mcp);
    const { renderMetrics } = deps;
    const admin =
      config.admin === null
        ? null
        : await startAdmin(config.admin, {
            clock,
            onError,
            allowedHosts: config.allowedHosts,
            isReady: () => core.isReady(),
            renderMetrics,
          });
    if (admin !== null) open.push(admin);
    logger.info('gateway is listening', { url: mcp.url, adminUrl: admin?.url ?? null });
    let stopping: Promise<void> | null = null;
    const stop = async (drain: boolean): Promise<void> => {
      if (drain) await core.drain();
      await mcp.close();
      await core.stop();
      await admin?.close();
    };
    return {
      url: mcp.url,
      adminUrl: admin?.url ?? null,
      changeAccess: (change) => {
        core.changeAccess(change);
      },
      readFilesNow: () => {
        mcp.readFilesNow();
      },
      stop(options) {
        stopping ??= stop(options?.drain ?? true);
        return stopping;
      },
    };
  } catch (error) {
    await Promise.all(open.map((listening) => listening.close()));
    await core.stop();
    throw error;
  }
}
