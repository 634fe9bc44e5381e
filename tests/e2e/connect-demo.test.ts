import process from 'node:process';
import { expect, it } from 'vitest';
import { runDemo } from './run-demo.ts';

it.runIf(process.env['DEEP'] === '1')(
  '[E2E-DEMO-CONNECT] the demonstration replaces one gateway and kills the other under a stdio client, which gets each step once and notices nothing',
  async () => {
    const { code, text } = await runDemo('demo:connect', 280_000);
    expect(code, text).toBe(0);
    expect(text.match(/^VERDICT: .*$/m)?.[0]).toBe(
      'VERDICT: kept. The gateways were replaced in the middle of a call, and the stdio client noticed nothing.',
    );
    expect(text).toMatch(/^ {3}kept: each of 24 steps of progress came once, in order$/m);
    expect(text).toMatch(/^ {3}kept: the client noticed nothing$/m);
    expect(text).not.toContain('BROKEN');
  },
  300_000,
);
