import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findDocker } from '@throughline/testkit/kafka';
import { describe, expect, it } from 'vitest';
import { makeComposeSecret } from './make-secret.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const text = readFileSync(path.join(ROOT, 'docker-compose.yml'), 'utf8');
const DRIVE_MS = 10 * 60_000;

describe('docker-compose.yml', () => {
  it('[CLI-COMPOSE] ports are published on loopback only, and there is one', () => {
    const ports = [...text.matchAll(/^ +ports: (.+)$/gm)].map(([, value]) => value);
    expect(ports).toEqual(["['127.0.0.1:${THROUGHLINE_PORT:-8080}:8080']"]);
  });

  it('[CLI-COMPOSE] the secret comes from a file that is made, once, and is no part of what is committed', () => {
    expect(text).toContain('file: ${THROUGHLINE_SECRETS_FILE:-./.throughline/compose/session-secrets}');
    expect(text).not.toMatch(/THROUGHLINE_SECRETS:/);
    expect(readFileSync(path.join(ROOT, '.gitignore'), 'utf8')).toMatch(/^\.throughline\/$/m);
    const folder = mkdtempSync(path.join(tmpdir(), 'throughline-secret-'));
    try {
      const file = path.join(folder, 'own', 'session-secrets');
      expect(makeComposeSecret(file)).toBe(true);
      const secret = readFileSync(file, 'utf8');
      expect(secret).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
      expect(makeComposeSecret(file)).toBe(false);
      expect(readFileSync(file, 'utf8')).toBe(secret);
      expect(statSync(path.dirname(file)).mode & 0o077).toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('[CLI-COMPOSE] the proxy knows each gateway, and asks for its readiness', () => {
    const proxy = readFileSync(path.join(ROOT, 'infra/haproxy/haproxy.cfg'), 'utf8');
    const gateways = [...text.matchAll(/^ {2}(gateway-\d+):/gm)].map(([, name]) => name);
    expect([...proxy.matchAll(/^ +server (\S+) (\S+):8080$/gm)].map(([, name, host]) => [name, host])).toEqual(
      gateways.map((name) => [name, name]),
    );
    expect(proxy).toMatch(/^ +option httpchk GET \/readyz$/m);
    expect(proxy).not.toMatch(/^ *(cookie|stick)/m);
    // As the sample whose addresses are tested: tests/e2e/proxy-addresses.test.ts.
    expect(proxy).toContain('\n  http-request set-header X-Forwarded-For %[src]\n');
  });
});

const isDeep = process.env['DEEP'] === '1';
describe.skipIf(!isDeep || (await findDocker()) === null)('npm run compose:drive', () => {
  it(
    '[CLI-COMPOSE] gateways and a broker are killed under a call through the proxy, and its client gets each event once and in order',
    { timeout: DRIVE_MS },
    async () => {
      const args = ['--conditions=@throughline/source', 'infra/compose/drive.ts'];
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, timeout: DRIVE_MS });
      expect(stdout).toContain('VERDICT: kept');
    },
  );
});
