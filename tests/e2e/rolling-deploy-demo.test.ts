import process from 'node:process';
import { expect, it } from 'vitest';
import { runDemo } from './run-demo.ts';

it.runIf(process.env['DEEP'] === '1')(
  '[E2E-DEMO-DEPLOY] the demonstration replaces both gateways and both workers under one call, and its client gets each step once, and every other answer',
  async () => {
    const { code, text } = await runDemo('demo:rolling-deploy', 280_000);
    expect(code, text).toBe(0);
    expect(text.match(/^VERDICT: .*$/m)?.[0]).toBe(
      'VERDICT: kept. Everything was replaced under a running call, and its client saw one answer and each step once.',
    );
    const replaced = [...text.matchAll(/^ {3}(gateway|worker) (\d+) drained .* left with exit code 0; (\d+) is in/gm)];
    expect(replaced.map(([, role]) => role)).toEqual(['gateway', 'gateway', 'worker', 'worker']);
    expect(new Set(replaced.flatMap(([, , former, next]) => [former, next])).size).toBe(8);
    expect(text).toMatch(/^ {3}kept: each of 40 steps of progress came once, in order$/m);
    expect(text).not.toContain('BROKEN');
  },
  300_000,
);
