/** What clients in other languages are built from: fetched once, kept in the user's cache, as Kafka's jars are. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { runQuietly } from '../../infra/docker/docker-command.ts';

const ROOT = path.join(process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache'), 'throughline', 'interop');
const FETCH_MS = 15 * 60_000;
const SHOWN = 400;

/**
 * The folder of this name, filled by `fill` if it is not there and it may fetch. `fill` says what failed, or null; the folder appears
 * at once and whole, whoever else fills it at the same time.
 */
export async function cached(
  name: string,
  { mayFetch }: { readonly mayFetch: boolean },
  fill: (folder: string) => Promise<string | null>,
): Promise<{ readonly folder: string } | { readonly failed: string }> {
  const folder = path.join(ROOT, name);
  if (existsSync(folder)) return { folder };
  if (!mayFetch) return { failed: 'it is not in the cache' };
  mkdirSync(ROOT, { recursive: true });
  const scratch = mkdtempSync(path.join(ROOT, 'filling-'));
  try {
    const failed = await fill(scratch);
    if (failed !== null) return { failed };
    if (!existsSync(folder)) renameSync(scratch, folder);
    return { folder };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Runs one step of `fill`: says what failed, or null. */
export async function step(
  file: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly environment?: Readonly<Record<string, string>> } = {},
): Promise<string | null> {
  const { code, output, errors } = await runQuietly(file, args, { ...options, deadlineMs: FETCH_MS });
  if (code === 0) return null;
  if (code === 127) return `${file} is not on this machine`;
  const said = (errors.trim() === '' ? output : errors).trim().slice(-SHOWN);
  return `${file} ${args[0] ?? ''} ended with ${code}: ${said}`;
}
