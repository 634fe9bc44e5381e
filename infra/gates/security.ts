/**
 * `npm run security`: no secret in what would be committed, no known hole of level high or above in what is shipped. A
 * registry that does not answer audits is said, and is no failure unless `REQUIRE_AUDIT=1`.
 */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { judgeAudit } from './audit.ts';
import { committable, scanForSecrets } from './secrets.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const AUDIT_MS = 60_000;

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

function areSecretsAbsent(): boolean {
  const { files, found } = scanForSecrets(ROOT, committable(ROOT));
  say(found === '' ? `secrets: none in ${files} files` : `secrets: found\n${found}`);
  return found === '';
}

function isAuditClean(): boolean {
  const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--audit-level=high', '--json'], {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: AUDIT_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
  const verdict = judgeAudit(stdout);
  switch (verdict.outcome) {
    case 'clean':
      say('audit: nothing of level high or above in what is shipped');
      return true;
    case 'vulnerable':
      say(`audit: ${verdict.packages.join(', ')}; see npm audit --omit=dev`);
      return false;
    case 'not-asked':
      say(`audit: skipped, the registry does not answer (${verdict.why})`);
      return process.env['REQUIRE_AUDIT'] !== '1';
  }
}

const results = [areSecretsAbsent(), isAuditClean()];
process.exitCode = results.every(Boolean) ? 0 : 1;
