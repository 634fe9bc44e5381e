/** Keys and certificates for one run of tests, by openssl. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface Identity {
  readonly key: string;
  readonly cert: string;
}

export interface Certificates {
  /** Signs the others. */
  readonly ca: string;
  /** For 127.0.0.1. */
  readonly server: Identity;
  /** Principal `CN=<name>`. */
  client(name: string): Identity;
  dispose(): void;
}

export function makeCertificates(): Certificates {
  const folder = mkdtempSync(path.join(tmpdir(), 'throughline-tls-'));
  const at = (name: string): string => path.join(folder, name);
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { stdio: 'ignore' });
  };
  openssl(
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=throughline-test-ca'],
    ...['-keyout', at('ca.key'), '-out', at('ca.pem')],
  );
  const issue = (name: string, usage: string): Identity => {
    writeFileSync(at(`${name}.ext`), `${usage}\n`);
    openssl(
      'req',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-subj',
      `/CN=${name}`,
      '-keyout',
      at(`${name}.key`),
      '-out',
      at(`${name}.csr`),
    );
    openssl(
      ...['x509', '-req', '-days', '2', '-in', at(`${name}.csr`), '-CA', at('ca.pem'), '-CAkey', at('ca.key')],
      ...['-CAcreateserial', '-extfile', at(`${name}.ext`), '-out', at(`${name}.pem`)],
    );
    return { key: readFileSync(at(`${name}.key`), 'utf8'), cert: readFileSync(at(`${name}.pem`), 'utf8') };
  };
  return {
    ca: readFileSync(at('ca.pem'), 'utf8'),
    server: issue('server', 'subjectAltName=IP:127.0.0.1'),
    client: (name) => issue(name, 'extendedKeyUsage=clientAuth'),
    dispose() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
