/** Certificate and key from files that are renewed while the gateway runs. SPEC: GW-TLS. */
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:https';
import { createSecureContext } from 'node:tls';
import type { Clock } from '@throughline/log';
import type { Logger } from '@throughline/telemetry';
import type { GatewayConfig } from '../config.ts';
import { followFiles } from '../follow-files.ts';
import type { Following } from '../follow-files.ts';

export type TlsFiles = NonNullable<GatewayConfig['tls']>;

export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
}

/** Rejects if a file cannot be read, or they cannot be used together. */
export async function readTls({ certFile, keyFile }: TlsFiles): Promise<TlsTexts> {
  const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
  createSecureContext({ cert, key });
  return { cert, key };
}

/**
 * Has new connections use the files as they are now, within 10 s of a change; those that are open go on. What cannot be
 * used changes nothing: one of the two may be written before the other.
 */
export function followTls(
  server: Server,
  files: TlsFiles,
  first: TlsTexts,
  by: { readonly clock: Clock; readonly logger: Logger },
): Following {
  return followFiles(
    {
      first,
      read: () => readTls(files),
      isSame: (one, other) => one.cert === other.cert && one.key === other.key,
      use: (texts) => {
        server.setSecureContext(texts);
      },
      events: {
        renewed: 'the TLS certificate was renewed',
        refused: 'the TLS files cannot be used; those read before go on',
      },
    },
    by,
  );
}
