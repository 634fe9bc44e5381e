import { describe, expect, it } from 'vitest';
import { renderChanges, renderTopics } from './topics.ts';

const APPLY = 'throughline topics apply --prefix p';

describe('topics for people', () => {
  it('[CLI-TOPICS] each change is a line, and the last one counts what is done and refused', () => {
    const changes = [
      { kind: 'create', topic: 'p.meta', partitions: 1, replication: 3 },
      { kind: 'add-partitions', topic: 'p.events', from: 4, to: 12 },
      { kind: 'set', topic: 'p.events', setting: 'retention.ms', from: '', to: '5' },
      { kind: 'refused', topic: 'p.inbound', reason: 'has 24 partitions' },
    ] as const;
    expect(renderChanges(changes, 'apply', APPLY)).toBe(
      '+ p.meta: created, 1 partitions, 3 replicas\n+ p.events: partitions 4 -> 12\n' +
        '~ p.events: retention.ms (none) -> 5\n! p.inbound: has 24 partitions\n3 done, 1 refused.\n' +
        'Gateways and workers that run use the new partitions within seconds; sessions stay where they are.\n',
    );
    expect(renderChanges(changes, 'diff', APPLY)).toMatch(
      /^\+ p\.meta: missing, [^]*3 to do with `throughline topics apply --prefix p`, 1 that it would refuse\.\n$/,
    );
    expect(renderChanges([], 'diff', APPLY)).toBe('The topics are as they should be.\n');
  });

  it('[CLI-TOPICS] a topic that is missing, offline or without readable settings shows that', () => {
    const state = { partitions: 3, replication: 2, inSync: 1, offline: 1, settings: new Map([['retention.ms', '-1']]) };
    const shown = renderTopics(
      [
        { topic: 'events', name: 'p.events', state },
        { topic: 'meta', name: 'p.meta', state: null },
      ],
      APPLY,
    ).split('\n');
    expect(shown[1]?.split(/ {2,}/)).toEqual(['p.events', '3 (1 offline)', '2', '1', '?', '?', 'for ever', '?']);
    expect(shown.slice(2)).toEqual(['p.meta    missing', '1 missing; run `throughline topics apply --prefix p`', '']);
  });
});
