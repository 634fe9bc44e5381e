/** Certificate and key from files that are renewed while the gateway runs. SPEC: GW-TLS. */
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:https';
import { createSecureContext } from 'node:tls';
import { errorText } from '@throughline/log';
import type { Clock } from '@throughline/log';
import type { Logger } from '@throughline/telemetry';
import type { GatewayConfig } from '../config.ts';

export type TlsFiles = NonNullable<GatewayConfig['tls']>;

export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
}

/** Milliseconds between two looks at the files. */
const TLS_LOOK_MS = 10_000;

/** Rejects if a file cannot be read, or they cannot be used together. */
export async function readTls({ certFile, keyFile }: TlsFiles): Promise<TlsTexts> {
  const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
  createSecureContext({ cert, key });
  return { cert, key };
}

/**
 * Has new connections use the files as they are now, within 10 s of a change; those that are open go on. What cannot be
 * used changes nothing: one of the two may be written before the other. Returns the way to stop.
 */
export function followTls(
  server: Server,
  files: TlsFiles,
  first: TlsTexts,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): () => void {
  let used = first;
  let failure: string | null = null;
  let isStopped = false;
  const look = async (): Promise<void> => {
    try {
      const texts = await readTls(files);
      if (isStopped || (texts.cert === used.cert && texts.key === used.key)) return;
      server.setSecureContext(texts);
      used = texts;
      failure = null;
      logger.info('the TLS certificate was renewed');
    } catch (error) {
      // Said once, not every 10 s.
      if (failure !== errorText(error))
        logger.warn('the TLS files cannot be used; those read before go on', { error: errorText(error) });
      failure = errorText(error);
    }
  };
  const lookLater = (): (() => void) =>
    clock.setTimer(TLS_LOOK_MS, () => {
      void look().finally(() => {
        if (!isStopped) cancel = lookLater();
      });
    });
  let cancel = lookLater();
  return () => {
    isStopped = true;
    cancel();
  };
}
