/**
 * HAProxy and nginx as programs: those of the machine, else from Debian's packages, unpacked into the user's cache and
 * not installed.
 */
import { existsSync, globSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { runQuietly } from '../docker/docker-command.ts';

export type ProxyName = 'haproxy' | 'nginx';
export const PROXY_NAMES: readonly ProxyName[] = ['haproxy', 'nginx'];

export interface ProxyProgram {
  readonly name: ProxyName;
  readonly file: string;
  /** What it needs to find the libraries that came with it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Such as `2.6.12-1+deb12u4`. */
  readonly version: string;
}

export interface Missing {
  /** Why, in words. */
  readonly missing: string;
}

const PACKAGES: Readonly<Record<ProxyName, string>> = { haproxy: 'haproxy', nginx: 'nginx-light' };
const FOLDERS = [...(process.env['PATH'] ?? '').split(path.delimiter), '/usr/sbin', '/usr/local/sbin'];
const DOWNLOAD_MS = 5 * 60_000;
const PROBE_MS = 20_000;

/** `mayFetch`: from Debian's packages if it is neither installed nor in the cache, which takes root. */
export async function findProxy(
  name: ProxyName,
  { mayFetch }: { readonly mayFetch: boolean },
): Promise<ProxyProgram | Missing> {
  const installed = FOLDERS.map((folder) => path.join(folder, name)).find((file) => existsSync(file));
  if (installed !== undefined) return await probe(name, installed, {});
  const folder = path.join(process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache'), 'throughline/debian', name);
  if (!existsSync(folder)) {
    if (!mayFetch) return { missing: `${name} is neither installed nor in the cache` };
    const failed = await fetchFromDebian(PACKAGES[name], folder);
    if (failed !== null) return { missing: failed };
  }
  const libraries = new Set(globSync('{lib,usr/lib}/**/*.so*', { cwd: folder }).map((file) => path.dirname(file)));
  const LD_LIBRARY_PATH = [...libraries].map((each) => path.join(folder, each)).join(path.delimiter);
  return await probe(name, path.join(folder, 'usr/sbin', name), { LD_LIBRARY_PATH });
}

/** Says what failed, or null. */
async function fetchFromDebian(name: string, folder: string): Promise<string | null> {
  mkdirSync(path.dirname(folder), { recursive: true });
  const scratch = mkdtempSync(path.join(path.dirname(folder), 'download-'));
  try {
    const archives = path.join(scratch, 'archives');
    const unpacked = path.join(scratch, 'unpacked');
    mkdirSync(path.join(archives, 'partial'), { recursive: true });
    const install = ['install', '-y', '-qq', '--no-install-recommends', '--download-only', '--reinstall'];
    const download = (): ReturnType<typeof runQuietly> =>
      runQuietly('apt-get', [...install, '-o', `Dir::Cache::archives=${archives}`, name], { deadlineMs: DOWNLOAD_MS });
    let got = await download();
    if (got.code !== 0) {
      await runQuietly('apt-get', ['update', '-qq'], { deadlineMs: DOWNLOAD_MS });
      got = await download();
    }
    if (got.code !== 0) return `apt-get cannot bring ${name}: ${got.errors.trim().slice(-300)}`;
    for (const file of globSync('*.deb', { cwd: archives })) {
      const { code, errors } = await runQuietly('dpkg-deb', ['-x', path.join(archives, file), unpacked], {
        deadlineMs: PROBE_MS,
      });
      if (code !== 0) return `${file} cannot be unpacked: ${errors.trim().slice(-300)}`;
    }
    // At once and whole, whoever else downloads at the same time.
    if (!existsSync(folder)) renameSync(unpacked, folder);
    return null;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function probe(
  name: ProxyName,
  file: string,
  environment: Readonly<Record<string, string>>,
): Promise<ProxyProgram | Missing> {
  const { code, output, errors } = await runQuietly(file, ['-v'], { environment, deadlineMs: PROBE_MS });
  const said = output + errors;
  if (code !== 0) return { missing: `${name} does not start: ${said.trim().slice(-300)}` };
  return { name, file, environment, version: /\d+\.\d+\.\d+[\w.+~-]*/.exec(said)?.[0] ?? 'of unknown version' };
}
