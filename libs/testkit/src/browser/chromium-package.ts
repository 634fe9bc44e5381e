/**
 * Chromium from the npm registry, once a version, in a folder of the user's cache. The package carries the program and
 * the libraries that a bare Linux lacks, so nothing is installed and nobody has to be root; Debian's package needs both,
 * and is another version each month. It is no dependency of the project: 67 MB for one test.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress } from 'node:zlib';
import { waitUntil } from '../processes/wait-until.ts';

const NAME = '@sparticuz/chromium';
const VERSION = '153.0.0';
/** Of the tarball, as the registry states it: what comes is what was looked at. */
const SHA512 = 'jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==';
const STEP_MS = 5 * 60_000;

export interface ChromiumFiles {
  readonly executable: string;
  /** Libraries that it looks for, for `LD_LIBRARY_PATH`. */
  readonly libraries: string;
}

const folder = (): string =>
  path.join(process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache'), 'throughline', 'chromium');

function filesIn(place: string): ChromiumFiles {
  return { executable: path.join(place, 'chromium'), libraries: path.join(place, 'al2023', 'lib') };
}

/** What was fetched before; `null`: nothing. */
export function findFetchedChromium(): ChromiumFiles | null {
  const files = filesIn(path.join(folder(), VERSION));
  return existsSync(files.executable) ? files : null;
}

/** Rejects where there is no such program for this machine, and with what npm or tar said. */
export async function fetchChromium(): Promise<ChromiumFiles> {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error(`the npm package ${NAME} is for Linux on x64; set CHROMIUM_PATH`);
  const cache = folder();
  mkdirSync(cache, { recursive: true });
  const scratch = mkdtempSync(path.join(cache, 'download-'));
  try {
    await run('npm', ['pack', `${NAME}@${VERSION}`, '--silent', '--pack-destination', scratch]);
    const tarball = path.join(scratch, `sparticuz-chromium-${VERSION}.tgz`);
    const digest = createHash('sha512');
    await pipeline(createReadStream(tarball), digest);
    if (digest.digest('base64') !== SHA512) throw new Error(`${NAME}@${VERSION} is not the package that is known`);
    await run('tar', ['-xzf', tarball, '-C', scratch]);
    const whole = path.join(scratch, 'whole');
    mkdirSync(whole);
    const packed = path.join(scratch, 'package', 'bin');
    await unpack(path.join(packed, 'chromium.br'), path.join(whole, 'chromium'));
    for (const name of ['al2023', 'fonts', 'swiftshader']) {
      const archive = path.join(scratch, `${name}.tar`);
      await unpack(path.join(packed, `${name}.tar.br`), archive);
      mkdirSync(path.join(whole, name));
      await run('tar', ['-xf', archive, '-C', path.join(whole, name)]);
    }
    // At once and whole, whoever else fetches at the same time.
    const place = path.join(cache, VERSION);
    if (!existsSync(place)) renameSync(whole, place);
    return filesIn(place);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function unpack(from: string, to: string): Promise<void> {
  await pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to, { mode: 0o755 }));
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: STEP_MS });
  let said = '';
  let ended: string | null = null;
  child.stderr.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-2000);
  });
  child.on('error', (error) => {
    ended = `does not start: ${error.message}`;
  });
  child.on('close', (code) => {
    ended ??= code === 0 ? '' : `ended with code ${code ?? 'none'}: ${said}`;
  });
  const reason = await waitUntil(`${command} to end`, () => ended ?? undefined, STEP_MS + 5000);
  if (reason !== '') throw new Error(`${command} ${reason}`);
}
