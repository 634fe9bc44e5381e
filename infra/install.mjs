// Whether node_modules is what package-lock.json asks for, and the way to make it so.
// Plain JavaScript without dependencies: it runs on the system's Node before anything is installed.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Node 24 comes as a development dependency, so that every machine runs the same one. */
export const nodeBinary = (root) => path.join(root, 'node_modules', 'node', 'bin', 'node');

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * Compares the lock file with the one npm leaves in node_modules after an install that ran to its end.
 * Returns what is wrong in a few words, or null. Optional packages (binaries for other systems) may be missing.
 */
export function findStaleInstall(root) {
  const wanted = readJson(path.join(root, 'package-lock.json'))?.packages;
  if (wanted === undefined) return 'package-lock.json cannot be read';
  const found = readJson(path.join(root, 'node_modules', '.package-lock.json'))?.packages;
  if (found === undefined) return 'dependencies are not installed yet';
  for (const [name, entry] of Object.entries(wanted)) {
    if (!name.includes('node_modules/')) continue;
    const installed = found[name];
    if (installed === undefined) {
      if (entry.optional === true || entry.devOptional === true) continue;
      return `${name} is missing`;
    }
    if (installed.version !== entry.version) return `${name} is not the version of package-lock.json`;
    if (installed.integrity !== entry.integrity) return `${name} is not the package of package-lock.json`;
  }
  if (!existsSync(nodeBinary(root))) return 'the Node 24 binary is missing';
  return null;
}

/** The environment without this project's node_modules/.bin: npm must not run on a binary that it is about to delete. */
function environmentForNpm(root) {
  const entries = (process.env.PATH ?? '').split(path.delimiter);
  const kept = entries.filter((entry) => !entry.startsWith(path.join(root, 'node_modules')));
  return { ...process.env, PATH: kept.join(path.delimiter) };
}

/** Installs if needed, saying so on stderr. Returns an exit code: 0 when everything is in place. */
export function ensureInstalled(root) {
  const reason = findStaleInstall(root);
  if (reason === null) return 0;
  process.stderr.write(
    `Throughline: installing dependencies (${reason}). This runs "npm ci" once: it downloads the packages named in ` +
      'package-lock.json and Node 24 into node_modules, about 450 MB, and takes a minute or so.\n',
  );
  const started = Date.now();
  // Warnings are left out: they say that packages want a newer Node than the system's, and they get it, Node 24.
  const result = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    env: environmentForNpm(root),
    // What npm prints belongs to stderr: stdout is the program's own.
    stdio: ['ignore', 2, 2],
  });
  if (result.error !== undefined || result.status !== 0) {
    const why =
      result.error === undefined ? `it ended with code ${result.status ?? result.signal}` : result.error.message;
    process.stderr.write(
      `Throughline: "npm ci" failed (${why}). Its own message is above. Check that the npm registry can be reached and ` +
        'that the disk has room, then run the command again.\n',
    );
    return 1;
  }
  const still = findStaleInstall(root);
  if (still !== null) {
    process.stderr.write(
      `Throughline: "npm ci" ended well, but ${still}. If npm was told not to run install scripts (ignore-scripts), ` +
        'allow them for the packages "node" and "esbuild", delete node_modules and run the command again.\n',
    );
    return 1;
  }
  process.stderr.write(`Throughline: installed in ${Math.round((Date.now() - started) / 1000)} s.\n`);
  return 0;
}
