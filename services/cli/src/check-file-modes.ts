/** Files of secrets that every user of this machine could read. SPEC: CLI-SECRET-MODE. */
import { statSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import type { OptionName } from './option-table.ts';
import type { ResolvedOptions } from './resolve-options.ts';

const SECRET_FILES = [
  'secrets-file',
  'tls-key',
  'kafka-tls-key-file',
  'kafka-password-file',
  'kafka-token-file',
] as const satisfies readonly OptionName[];
/** Those who mount them there set their modes, and nobody else is in the container. */
const MOUNTED = ['/run/secrets/', '/var/run/secrets/'];
const OTHERS_READ = 0o004;
const OTHERS_ENTER = 0o001;

/** A warning for each; those that cannot be read are faults elsewhere. */
export function checkFileModes(options: ResolvedOptions, cwd: string): string[] {
  // Its modes say nothing.
  if (process.platform === 'win32') return [];
  return SECRET_FILES.flatMap((name) => {
    const given = options[name];
    if (given === undefined) return [];
    const file = path.resolve(cwd, given);
    if (MOUNTED.some((folder) => file.startsWith(folder)) || !canOthersRead(file)) return [];
    return [`--${name}: every user of this machine can read ${file}; chmod 600 it`];
  });
}

function canOthersRead(file: string): boolean {
  try {
    const state = statSync(file);
    return (
      state.isFile() && (state.mode & OTHERS_READ) !== 0 && (statSync(path.dirname(file)).mode & OTHERS_ENTER) !== 0
    );
  } catch {
    return false;
  }
}
