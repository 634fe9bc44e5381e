/** The commit that something was measured or tested at. */
import { execFileSync } from 'node:child_process';
import { ROOT } from './run-command.ts';

/** Short, and whether anything else was changed; `unknown` outside of a repository. */
export function describeCommit(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
  try {
    return git('rev-parse', '--short=10', 'HEAD') + (git('status', '--porcelain') === '' ? '' : ' and changes');
  } catch {
    return 'unknown';
  }
}
