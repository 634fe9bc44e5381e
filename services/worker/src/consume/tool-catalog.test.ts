import { describe, expect, it } from 'vitest';
import { effectsOf, ToolCatalog } from './tool-catalog.ts';

const call = (name: unknown): Parameters<typeof effectsOf>[0] => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name },
});
const list = (...tools: readonly unknown[]): object => ({ tools });

describe('effects of a request', () => {
  it.each([
    'initialize',
    'ping',
    'tools/list',
    'resources/list',
    'resources/templates/list',
    'resources/read',
    'resources/subscribe',
    'resources/unsubscribe',
    'prompts/list',
    'prompts/get',
    'completion/complete',
    'logging/setLevel',
  ])('[WRK-EFFECTS] %s has none', (method) => {
    expect(effectsOf({ jsonrpc: '2.0', id: 1, method }, undefined)).toBe('none');
  });

  it.each(['tasks/cancel', 'x/y', 'tools/call'])('[WRK-EFFECTS] those of %s are unknown', (method) => {
    expect(effectsOf({ jsonrpc: '2.0', id: 1, method }, new ToolCatalog())).toBe('unknown');
  });

  it('[WRK-EFFECTS] those of a tool are what its annotations say, and unknown without them', () => {
    const catalog = new ToolCatalog();
    catalog.learn(
      list(
        { name: 'r', annotations: { readOnlyHint: true } },
        { name: 'i', annotations: { idempotentHint: true } },
        { name: 'both', annotations: { readOnlyHint: true, idempotentHint: true } },
        { name: 'odd', annotations: { readOnlyHint: 'true' } },
        { name: 'bare' },
        { annotations: { readOnlyHint: true } },
        null,
      ),
    );
    const effects = ['r', 'i', 'both', 'odd', 'bare', 'unlisted', 7].map((name) => effectsOf(call(name), catalog));
    expect(effects).toEqual(['none', 'idempotent', 'none', 'unknown', 'unknown', 'unknown', 'unknown']);
  });

  it('[WRK-EFFECTS] of two words about one tool the more cautious counts, until the list changes', () => {
    const catalog = new ToolCatalog([['t', { readOnly: true, idempotent: true }]]);
    catalog.learn(list({ name: 't' }));
    catalog.learn(list({ name: 't', annotations: { readOnlyHint: true } }));
    expect(effectsOf(call('t'), catalog)).toBe('unknown');
    catalog.forget();
    catalog.learn(list({ name: 't', annotations: { readOnlyHint: true } }));
    expect(effectsOf(call('t'), catalog)).toBe('none');
  });

  it('[WRK-EFFECTS] what is no list of tools teaches nothing', () => {
    const catalog = new ToolCatalog([['t', { readOnly: true, idempotent: false }]]);
    for (const result of [null, [], 'x', { tools: 'x' }, { tools: {} }]) catalog.learn(result);
    expect(effectsOf(call('t'), catalog)).toBe('none');
  });
});
