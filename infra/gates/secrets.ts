/** Looks for secrets in files, by secretlint with its recommended rules; the gate is its test and `npm run security`. */
import { execFileSync, spawnSync } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** So that no command line becomes too long. */
const FILES_AT_ONCE = 500;

export interface Scan {
  readonly files: number;
  /** What was found, each with its file and place, the secret itself masked. Empty: nothing. */
  readonly found: string;
}

/** What git would commit of `folder`: tracked, or new and not ignored. */
export function committable(folder: string): string[] {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
  const text = execFileSync('git', args, { cwd: folder, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  return text.split('\0').filter((file) => file !== '');
}

/** Throws if secretlint itself fails: a scan that did not happen is no clean one. */
export function scanForSecrets(folder: string, files: readonly string[]): Scan {
  const found: string[] = [];
  for (let from = 0; from < files.length; from += FILES_AT_ONCE) {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [
        path.join(ROOT, 'node_modules', 'secretlint', 'bin', 'secretlint.js'),
        '--maskSecrets',
        '--secretlintrc',
        path.join(ROOT, '.secretlintrc.json'),
        '--secretlintignore',
        path.join(ROOT, '.secretlintignore'),
        ...files.slice(from, from + FILES_AT_ONCE),
      ],
      { cwd: folder, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
    );
    // 0: nothing; 1: something was found; else it did not look.
    if (status !== 0 && (status !== 1 || stdout === '')) throw new Error(`secretlint ended with ${status}: ${stderr}`);
    if (status === 1) found.push(stdout);
  }
  return { files: files.length, found: found.join('') };
}
