import { expect, it } from 'vitest';
import { runDemo } from './run-demo.ts';

it('[E2E-DEMO] the failover demonstration shows equal ids on both sides of a kill and a kept verdict, and ends with 0', async () => {
  const { code, text } = await runDemo('demo:failover');
  expect(code, text).toBe(0);
  expect(text.match(/^VERDICT: .*$/m)?.[0]).toBe(
    'VERDICT: kept. Nothing was lost, nothing was repeated, nothing was left hanging.',
  );
  // Ten steps and the result, each under the same id on both sides.
  expect(text.match(/^ {4}offset \d+ {2}seq \d+ {2}\S+ += offset/gm)).toHaveLength(11);
  expect(text).not.toContain('≠');
  expect(text).toContain('"code":"OWNER_LOST"');
}, 150_000);
