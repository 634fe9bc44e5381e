/** Certificates of tests, by openssl. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';

export interface SelfSigned {
  readonly certFile: string;
  readonly keyFile: string;
  /** Trust in it. */
  readonly ca: string;
}

/** For 127.0.0.1 and the name, in `folder`. */
export function makeSelfSigned(folder: string, name: string): SelfSigned {
  const certFile = path.join(folder, `${name}.pem`);
  const keyFile = path.join(folder, `${name}.key`);
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=IP:127.0.0.1,DNS:${name}`];
  execFileSync('openssl', [...args, ...subject, '-keyout', keyFile, '-out', certFile], { stdio: 'ignore' });
  return { certFile, keyFile, ca: readFileSync(certFile, 'utf8') };
}
