/** A broker of our own that clients reach through a proxy: the proxy's address is the one that it advertises. */
import { startFaultLink } from '../fault-link.ts';
import type { FaultLink } from '../fault-link.ts';
import { findFreePort, LOOPBACK } from '../free-port.ts';
import { TEST_BROKER } from './find-kafka.ts';
import { startLocalKafka } from './local-kafka.ts';
import type { LocalKafka } from './local-kafka.ts';

export interface ProxiedKafka {
  /** Its plain listener, `brokers`, does not go through the proxy. */
  readonly kafka: LocalKafka;
  readonly proxy: FaultLink;
  /** `host:port` of the proxy. */
  readonly address: string;
  stop(): Promise<void>;
}

/** @param options.overrides settings of the listener `PROXIED` are named `listener.name.proxied.…`. */
export async function startProxiedKafka(
  options: {
    /** Default `PLAINTEXT`. */
    readonly protocol?: 'PLAINTEXT' | 'SASL_PLAINTEXT';
    readonly overrides?: Readonly<Record<string, string>>;
  } = {},
): Promise<ProxiedKafka> {
  let listening = 0;
  const proxy = await startFaultLink({ target: () => ({ host: LOOPBACK, port: listening }) });
  const address = `${LOOPBACK}:${proxy.port}`;
  try {
    const port = await findFreePort();
    const kafka = await startLocalKafka({
      port,
      listeners: { PROXIED: options.protocol ?? 'PLAINTEXT' },
      overrides: {
        ...TEST_BROKER,
        'advertised.listeners': `PLAINTEXT://${LOOPBACK}:${port},PROXIED://${address}`,
        ...options.overrides,
      },
    });
    listening = Number(kafka.listener('PROXIED')[0]?.split(':')[1]);
    return {
      kafka,
      proxy,
      address,
      async stop() {
        await proxy.stop();
        await kafka.stop();
      },
    };
  } catch (error) {
    await proxy.stop();
    throw error;
  }
}
