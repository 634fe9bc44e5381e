import { LogError } from '@throughline/log';
import { createVirtualTime } from '@throughline/testkit';
import { expect, it } from 'vitest';
import { ReadOutages } from './read-outages.ts';

const EVENTS = { topic: 'events', partition: 3 } as const;
const META = { topic: 'meta', partition: 0 } as const;
const away = (): LogError => new LogError('LOG_UNAVAILABLE', 'no broker answers');

function createRig() {
  const time = createVirtualTime({ seed: 1 });
  const [lines, codes]: [unknown[], string[]] = [[], []];
  const outages = new ReadOutages({
    clock: time.clock(),
    logger: {
      warn: (event, fields) => lines.push(['warn', event, fields]),
      info: (event, fields) => lines.push(['info', event, fields]),
    },
    onFailure: (code) => codes.push(code),
  });
  return { time, lines, codes, ...outages };
}

it('[TAIL-OUTAGE] one line says that a partition does not answer, one that it answers again, and how long that lasted', async () => {
  const { time, lines, codes, onError, onAnswer } = createRig();
  onAnswer(EVENTS);
  for (let count = 0; count < 20; count++) {
    onError(away(), EVENTS);
    await time.advance(100);
  }
  onError(away(), META);
  await time.advance(3000);
  onAnswer(EVENTS);
  onAnswer(EVENTS);
  expect(lines).toEqual([
    [
      'warn',
      'log read failed; trying until it answers',
      { topic: 'events', partition: 3, code: 'LOG_UNAVAILABLE', error: 'no broker answers' },
    ],
    [
      'warn',
      'log read failed; trying until it answers',
      { topic: 'meta', partition: 0, code: 'LOG_UNAVAILABLE', error: 'no broker answers' },
    ],
    ['info', 'the log answers again', { topic: 'events', partition: 3, lastedMs: 5000 }],
  ]);
  expect(codes).toEqual(Array.from({ length: 21 }, () => 'LOG_UNAVAILABLE'));
});

it('[TAIL-OUTAGE] a partition that answers some reads and fails others does not answer yet', async () => {
  const { time, lines, onError, onAnswer } = createRig();
  for (let count = 0; count < 20; count++) {
    onError(away(), EVENTS);
    await time.advance(50);
    onAnswer(EVENTS);
    await time.advance(50);
  }
  expect(lines).toHaveLength(1);
  await time.advance(1000);
  onAnswer(EVENTS);
  // Until the first answer behind the last failure.
  expect(lines[1]).toEqual(['info', 'the log answers again', { topic: 'events', partition: 3, lastedMs: 1950 }]);
  onError(away(), EVENTS);
  expect(lines).toHaveLength(3);
});

it('[TAIL-OUTAGE] what is no error of the log has no code', () => {
  const { lines, codes, onError } = createRig();
  onError(new TypeError('odd'), EVENTS);
  const fields = { topic: 'events', partition: 3, code: 'unknown', error: 'odd' };
  expect(lines).toEqual([['warn', 'log read failed; trying until it answers', fields]]);
  expect(codes).toEqual(['unknown']);
});
