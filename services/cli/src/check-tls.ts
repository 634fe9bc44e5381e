/** The certificate and the key of the endpoint: there, readable, and of each other. SPEC: CLI-TLS, CLI-FAULTS. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import path from 'node:path';
import { pushProblems, readNamedFile } from './access-files.ts';
import type { Fault } from './faults.ts';
import type { Layer } from './layers.ts';
import type { OptionUser } from './option-table.ts';
import type { ResolvedOptions } from './resolve-options.ts';

/** Relative paths of flags are relative to `cwd`. Only who serves has to be able to read them. */
export function checkTls(
  role: OptionUser,
  layer: Layer,
  options: ResolvedOptions,
  cwd: string,
  faults: Fault[],
): { readonly tls?: { readonly certFile: string; readonly keyFile: string } } {
  const { 'tls-cert': cert, 'tls-key': key } = options;
  if (cert === undefined && key === undefined) return {};
  if (cert === undefined || key === undefined) {
    const [has, lacks] = cert === undefined ? ['--tls-key', '--tls-cert'] : ['--tls-cert', '--tls-key'];
    faults.push({ where: has, problem: `needs ${lacks}: TLS takes a certificate and its key.` });
    return {};
  }
  if (role === 'serve' || role === 'gateway') checkFiles(layer, options, cwd, faults);
  return { tls: { certFile: path.resolve(cwd, cert), keyFile: path.resolve(cwd, key) } };
}

function checkFiles(layer: Layer, options: ResolvedOptions, cwd: string, faults: Fault[]): void {
  const certText = readNamedFile('tls-cert', layer, options, cwd, faults);
  const keyText = readNamedFile('tls-key', layer, options, cwd, faults);
  const cert = certText === undefined ? undefined : parseCertificate(certText);
  const key = keyText === undefined ? undefined : parseKey(keyText);
  if (typeof cert === 'string') pushProblems('tls-cert', [cert], layer, faults);
  if (typeof key === 'string') pushProblems('tls-key', [key], layer, faults);
  if (typeof cert === 'object' && typeof key === 'object' && !cert.checkPrivateKey(key))
    pushProblems('tls-key', ['is not the key of the certificate of --tls-cert'], layer, faults);
}

/** Or what is wrong with it. */
function parseCertificate(text: string): X509Certificate | string {
  try {
    return new X509Certificate(text);
  } catch {
    const holdsKey = /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text);
    return `holds ${holdsKey ? 'a key, and ' : ''}no certificate in PEM`;
  }
}

/** Or what is wrong with it. */
function parseKey(text: string): KeyObject | string {
  try {
    return createPrivateKey(text);
  } catch {
    if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text))
      return 'is encrypted; write the key without a passphrase';
    const holdsCertificate = text.includes('-----BEGIN CERTIFICATE-----');
    return `holds ${holdsCertificate ? 'a certificate, and ' : ''}no private key in PEM`;
  }
}
