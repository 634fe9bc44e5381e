import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Environment } from './read-environment.ts';
import type { Settings } from './settings.ts';
import { suggestCommand } from './suggest-command.ts';
import { loadLine } from './testing/load-line.ts';

const cwd = mkdtempSync(path.join(tmpdir(), 'throughline-suggest-'));
afterAll(() => {
  rmSync(cwd, { recursive: true });
});

const settingsOf = (line: string | readonly string[], environment: Environment = {}): Settings =>
  loadLine(line, environment, cwd);

/** What decides which log is spoken to, and how. */
const reach = ({ log }: Settings): unknown => [log.location, log.kafka, log.topics];

describe('suggestCommand', () => {
  it('[CLI-ADVICE] the options of this command come along, wherever they were set', () => {
    const line = 'topics diff --log kafka://b1:9092 --prefix p --retention 48h --log-level warn';
    expect(suggestCommand(settingsOf(line), 'topics apply')).toBe(
      'throughline topics apply --log kafka://b1:9092 --retention 48h --prefix p',
    );
    expect(suggestCommand(settingsOf(line), 'owners')).toBe('throughline owners --log kafka://b1:9092 --prefix p');
    expect(suggestCommand(settingsOf(line), 'topics apply', ['--retention', '72h'])).toBe(
      'throughline topics apply --retention 72h --log kafka://b1:9092 --prefix p',
    );
    expect(
      suggestCommand(
        settingsOf('topics show', { THROUGHLINE_LOG: 'kafka://b1', THROUGHLINE_PREFIX: 'q' }),
        'topics apply',
      ),
    ).toBe('throughline topics apply --log kafka://b1 --prefix q');
  });

  it('[CLI-ADVICE] [CLI-REDACT] pasted where this one ran it reaches the same log by the same login, and shows no secret', () => {
    writeFileSync(path.join(cwd, 'pass word'), 'hunter2\n');
    writeFileSync(
      path.join(cwd, 'other.yaml'),
      'log: kafka://b2:9092\nkafka:\n  prefix: r\n  tls: true\n  sasl: plain\n  username: o\n  password: hunter3\n',
    );
    const cases: readonly (readonly [line: readonly string[], environment: Environment])[] = [
      [['topics', 'show', '--config', 'other.yaml'], {}],
      [['topics', 'show', '--no-kafka-tls'], { THROUGHLINE_CONFIG: 'other.yaml' }],
      [
        ['topics', 'show', '--log', 'kafka://b1', '--kafka-sasl', 'scram-sha-512', '--kafka-username', "it's"],
        { THROUGHLINE_KAFKA_PASSWORD: 'hunter4' },
      ],
      [
        ['topics', 'show', '--log', 'kafka://b1', '--kafka-sasl', 'plain', '--kafka-username', 'u'],
        { THROUGHLINE_KAFKA_PASSWORD_FILE: 'pass word' },
      ],
    ];
    for (const [argv, environment] of cases) {
      const settings = settingsOf(argv, environment);
      const advised = suggestCommand(settings, 'topics apply');
      expect(advised).not.toContain('hunter');
      const words = [...advised.matchAll(/(?:'[^']*'|\\'|[^\s'\\])+/g)].map(([word]) =>
        word.replaceAll(
          /'([^']*)'|\\(')/g,
          (_, quoted: string | undefined, escaped: string | undefined) => quoted ?? escaped ?? '',
        ),
      );
      expect(reach(settingsOf(words.slice(1), environment)), advised).toEqual(reach(settings));
    }
  });
});
