import { expect, it } from 'vitest';
import { runDemo } from './run-demo.ts';

it('[E2E-DEMO-ELICIT] the demonstration kills the gateway while a form is open, shows each form once, takes the answer over the other gateway, and ends with 0', async () => {
  const { code, text } = await runDemo('demo:elicitation');
  expect(code, text).toBe(0);
  expect(text.match(/^VERDICT: .*$/m)?.[0]).toBe(
    'VERDICT: kept. The gateway was killed while a form was open; the person was asked once, and the call finished.',
  );
  const shown = [...text.matchAll(/^ {3}the person is shown a form: (.*)$/gm)].map(([, form]) => form);
  expect(shown).toEqual(['Who travels?', 'Which seat for Ada?']);
  // The kill, and the way over the other gateway, lie between the form and its answer.
  const order = ['Which seat for Ada?', 'kill -9', 'resumes on gateway B', 'the person answers: 4C'];
  const places = order.map((part) => text.indexOf(part));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(text).toContain('the call finishes: Ada sits on 4C.');
}, 150_000);
