import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { judgeAudit } from './audit.ts';
import { scanForSecrets } from './secrets.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'throughline-secrets-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

/** Made here, so that this file holds none itself. */
const PLANTED = [
  ['key.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }) as string],
  ['config.ts', `const token = '${['ghp', 'wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx'].join('_')}';\n`],
  ['.npmrc', `//registry.npmjs.org/:_authToken=${['npm', 'z9mD3kQ7pX2vB5nR8tY1wE4uI6oP0aS3dF7g'].join('_')}\n`],
  ['compose.yml', `AWS_SECRET_ACCESS_KEY=${randomBytes(30).toString('base64')}\n`],
] as const;

describe('the scan for secrets', () => {
  it.each(PLANTED)(
    '[DOC-SECRETS] finds one that was planted in %s, and does not print it',
    (name, text) => {
      writeFileSync(path.join(folder, name), text);
      writeFileSync(path.join(folder, 'harmless.ts'), 'export const answer = 42;\n');
      const { files, found } = scanForSecrets(folder, [name, 'harmless.ts']);
      expect(files).toBe(2);
      expect(found).toContain(name);
      expect(found).not.toContain('harmless.ts');
      const secret = /[A-Za-z0-9/_+]{36,}/.exec(text)?.[0];
      expect(secret).toBeDefined();
      expect(found).not.toContain(secret);
    },
    30_000,
  );

  it('[DOC-SECRETS] finds nothing where there is nothing', () => {
    writeFileSync(path.join(folder, 'a.ts'), 'export const a = 1;\n');
    expect(scanForSecrets(folder, ['a.ts'])).toEqual({ files: 1, found: '' });
  }, 30_000);
});

describe('the verdict of npm audit', () => {
  const report = (vulnerabilities: object): string =>
    JSON.stringify({ auditReportVersion: 2, vulnerabilities, metadata: { vulnerabilities: {} } });

  it('[DOC-AUDIT] counts what is high or critical, and nothing below', () => {
    expect(judgeAudit(report({}))).toEqual({ outcome: 'clean' });
    expect(judgeAudit(report({ a: { severity: 'moderate' }, b: { severity: 'low' } }))).toEqual({ outcome: 'clean' });
    expect(
      judgeAudit(report({ a: { severity: 'high' }, b: { severity: 'critical' }, c: { severity: 'info' } })),
    ).toEqual({ outcome: 'vulnerable', packages: ['a (high)', 'b (critical)'] });
  });

  it('[DOC-AUDIT] a registry that does not answer is no clean one', () => {
    expect(judgeAudit(JSON.stringify({ message: '405 Method Not Allowed', statusCode: 405, error: {} }))).toEqual({
      outcome: 'not-asked',
      why: '405 Method Not Allowed',
    });
    expect(judgeAudit(JSON.stringify({ error: { summary: 'ENOTFOUND' } }))).toMatchObject({ why: 'ENOTFOUND' });
    for (const text of ['', 'npm error', 'null']) expect(judgeAudit(text)).toMatchObject({ outcome: 'not-asked' });
  });
});
