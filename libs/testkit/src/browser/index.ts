export { findChromium } from './find-chromium.ts';
export type { ChromiumSources, FoundChromium, NoChromium } from './find-chromium.ts';
