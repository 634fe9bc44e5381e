/** `npm run compose:secret`: the secret that signs session ids, made once. Whoever has it can make session ids. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Resolves with whether it was made now. */
export function makeComposeSecret(file: string): boolean {
  if (existsSync(file)) return false;
  const main = path.join(ROOT, 'services/cli/src/main.ts');
  const secret = execFileSync(process.execPath, ['--conditions=@throughline/source', main, 'secret', 'new']);
  // Compose mounts the file as it is, and the gateway in its container is another user: the folder keeps others out.
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, secret, { mode: 0o444 });
  return true;
}

if (import.meta.main) {
  const file = path.join(ROOT, '.throughline', 'compose', 'session-secrets');
  const shown = path.relative(ROOT, file);
  process.stdout.write(makeComposeSecret(file) ? `written: ${shown}\n` : `kept: ${shown} is there already\n`);
}
