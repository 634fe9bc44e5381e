/** `npm run packages`: the packages that programs install, as tarballs for `npm install`. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { text } from '../options/option.ts';
import { optionsOrExit } from '../options/read-options.ts';
import { buildPackage, readManifest } from './build-package.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PACKAGES = ['protocol', 'log', 'history', 'tail', 'client', 'event-store', 'producer'];
const PACK_MS = 60_000;

const { to } = optionsOrExit(
  {
    command: 'npm run packages',
    does: 'Packs @throughline/client, event-store, producer and what they need, for `npm install <folder>/*.tgz`.',
    options: { to: text('<folder>', 'where they are written (default packages)', path.join(ROOT, 'packages')) },
  },
  process.argv.slice(2),
);
const folder = path.resolve(to);
const sources = PACKAGES.map((name) => path.join(ROOT, 'libs', name));
const versions = new Map(sources.map((source) => readManifest(source)).map(({ name, version }) => [name, version]));
const scratch = mkdtempSync(path.join(tmpdir(), 'throughline-packages-'));
try {
  mkdirSync(folder, { recursive: true });
  for (const source of sources) {
    const target = path.join(scratch, path.basename(source));
    buildPackage(source, target, versions);
    const args = ['pack', '--silent', '--pack-destination', folder];
    const file = execFileSync('npm', args, { cwd: target, encoding: 'utf8', timeout: PACK_MS }).trim();
    process.stdout.write(`${path.join(folder, file)}\n`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
