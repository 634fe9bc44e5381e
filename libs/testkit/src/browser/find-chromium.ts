/** Which browser tests run in: the one that is named, one that is installed, else one from the npm registry. */
import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { errorText } from '@throughline/log';
import { fetchChromium, findFetchedChromium } from './chromium-package.ts';
import type { ChromiumFiles } from './chromium-package.ts';

export interface FoundChromium {
  readonly from: 'environment' | 'installed' | 'fetched';
  readonly executable: string;
  /** Over that of the process. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface NoChromium {
  readonly from: 'none';
  readonly reason: string;
}

const INSTALLED = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

export interface ChromiumSources {
  isExecutable(file: string): boolean;
  fetched(): ChromiumFiles | null;
  fetch(): Promise<ChromiumFiles>;
}

const SOURCES: ChromiumSources = {
  isExecutable(file) {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  },
  fetched: findFetchedChromium,
  fetch: fetchChromium,
};

/**
 * Order: `CHROMIUM_PATH`, what `PATH` leads to, what was fetched before; with `DEEP=1` or
 * `REQUIRE_CHROMIUM=1` it is fetched. Without any it says why, on stderr; with `REQUIRE_CHROMIUM=1` it throws.
 */
export async function findChromium(
  sources: ChromiumSources = SOURCES,
  environment: Readonly<Record<string, string | undefined>> = process.env,
  say: (text: string) => unknown = (text) => process.stderr.write(text),
): Promise<FoundChromium | NoChromium> {
  const named = environment['CHROMIUM_PATH'] ?? '';
  if (named !== '') return { from: 'environment', executable: named, environment: {} };
  const folders = (environment['PATH'] ?? '').split(path.delimiter).filter((folder) => folder !== '');
  const installed = folders
    .flatMap((folder) => INSTALLED.map((name) => path.join(folder, name)))
    .find((file) => sources.isExecutable(file));
  if (installed !== undefined) return { from: 'installed', executable: installed, environment: {} };
  const isRequired = environment['REQUIRE_CHROMIUM'] === '1';
  const mayFetch = isRequired || environment['DEEP'] === '1';
  let reason = 'none is installed, and only the deep lane fetches one';
  try {
    const files = sources.fetched() ?? (mayFetch ? await sources.fetch() : null);
    if (files !== null)
      return {
        from: 'fetched',
        executable: files.executable,
        environment: { LD_LIBRARY_PATH: files.libraries },
      };
  } catch (error) {
    reason = `none is installed, and none could be fetched: ${errorText(error)}`;
  }
  if (isRequired) throw new Error(`REQUIRE_CHROMIUM=1, and there is no Chromium: ${reason}`);
  say(`\nTests in a browser are SKIPPED, there is no Chromium: ${reason}\n`);
  return { from: 'none', reason };
}
