import { describe, expect, it } from 'vitest';
import { findChromium } from './find-chromium.ts';
import type { ChromiumSources } from './find-chromium.ts';

const FILES = { executable: '/cache/chromium', libraries: '/cache/lib' };
const quiet = () => undefined;
const nothing: ChromiumSources = {
  isExecutable: () => false,
  fetched: () => null,
  fetch: () => Promise.reject(new Error('no registry')),
};

describe('the browser of a test run', () => {
  it('[BROWSER-LANE] CHROMIUM_PATH comes first, then an installed one, then one that was fetched before', async () => {
    const all: ChromiumSources = { ...nothing, isExecutable: (file) => file === '/b/chromium', fetched: () => FILES };
    expect(await findChromium(all, { CHROMIUM_PATH: '/mine', PATH: '/a:/b' }, quiet)).toEqual({
      from: 'environment',
      executable: '/mine',
      environment: {},
    });
    expect(await findChromium(all, { PATH: '/a:/b' }, quiet)).toEqual({
      from: 'installed',
      executable: '/b/chromium',
      environment: {},
    });
    expect(await findChromium(all, { PATH: '/a' }, quiet)).toEqual({
      from: 'fetched',
      executable: '/cache/chromium',
      environment: { LD_LIBRARY_PATH: '/cache/lib' },
    });
  });

  it('[BROWSER-LANE] only the deep lane, and whoever requires one, fetches it', async () => {
    let fetches = 0;
    const registry: ChromiumSources = {
      ...nothing,
      fetch: () => {
        fetches += 1;
        return Promise.resolve(FILES);
      },
    };
    expect(await findChromium(registry, {}, quiet)).toMatchObject({ from: 'none' });
    expect(fetches).toBe(0);
    expect(await findChromium(registry, { DEEP: '1' }, quiet)).toMatchObject({ from: 'fetched' });
    expect(await findChromium(registry, { REQUIRE_CHROMIUM: '1' }, quiet)).toMatchObject({ from: 'fetched' });
    expect(fetches).toBe(2);
  });

  it('[BROWSER-LANE] without any the run says why and goes on, and fails where REQUIRE_CHROMIUM=1', async () => {
    const said: string[] = [];
    const found = await findChromium(nothing, { DEEP: '1' }, (text) => said.push(text));
    expect(found).toEqual({
      from: 'none',
      reason: 'none is installed, and none could be fetched: no registry',
    });
    expect(said.join('')).toMatch(/SKIPPED.*no registry/);
    await expect(findChromium(nothing, { REQUIRE_CHROMIUM: '1' }, quiet)).rejects.toThrow('there is no Chromium');
  });
});
