import { expect, it } from 'vitest';
import { runDemo } from './run-demo.ts';

it('[E2E-DEMO-HUMAN] the demonstration with a person kills a worker while a form is open, shows each form once and a kept verdict, and ends with 0', async () => {
  const { code, text } = await runDemo('demo:human');
  expect(code, text).toBe(0);
  expect(text.match(/^VERDICT: .*$/m)?.[0]).toBe(
    'VERDICT: kept. The worker was killed while a form was open; the person was asked once, and the call finished.',
  );
  const shown = [...text.matchAll(/^ {3}the person is shown a form: (.*)$/gm)].map(([, form]) => form);
  expect(shown).toEqual(['Who travels?', 'Which seat for Ada?']);
  // The kill lies between the form and its answer.
  expect(text.indexOf('kill -9')).toBeGreaterThan(text.indexOf('Which seat for Ada?'));
  expect(text.indexOf('kill -9')).toBeLessThan(text.indexOf('the person answers: 4C'));
  expect(text).toContain('the call finishes: Ada sits on 4C.');
}, 150_000);
