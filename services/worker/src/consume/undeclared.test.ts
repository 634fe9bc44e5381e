import { describe, expect, it } from 'vitest';
import { undeclaredOf } from './undeclared.ts';

const lacks = (method: string, params: Readonly<Record<string, unknown>> | undefined, capabilities: object): unknown =>
  undeclaredOf(
    { jsonrpc: '2.0', id: 1, method, ...(params === undefined ? {} : { params }) },
    capabilities as Readonly<Record<string, unknown>>,
  )?.name ?? 'nothing';

describe('[WRK-DECLARED] what a client lacks for a request of its server', () => {
  it.each([
    ['roots/list', undefined, {}, 'roots'],
    ['roots/list', undefined, { roots: {} }, 'nothing'],
    ['roots/list', undefined, { sampling: {} }, 'roots'],
    ['sampling/createMessage', {}, { roots: { listChanged: true } }, 'sampling'],
    ['sampling/createMessage', {}, { sampling: {} }, 'nothing'],
    ['sampling/createMessage', { tools: [] }, { sampling: {} }, 'sampling.tools'],
    ['sampling/createMessage', { toolChoice: {} }, { sampling: { context: {} } }, 'sampling.tools'],
    ['sampling/createMessage', { tools: [] }, { sampling: { tools: {} } }, 'nothing'],
    ['sampling/createMessage', { includeContext: 'allServers' }, { sampling: {} }, 'nothing'],
    ['elicitation/create', undefined, {}, 'elicitation.form'],
    ['elicitation/create', {}, { elicitation: {} }, 'nothing'],
    ['elicitation/create', { mode: 'form' }, { elicitation: {} }, 'nothing'],
    ['elicitation/create', { mode: 'form' }, { elicitation: { schemaValidation: true } }, 'nothing'],
    ['elicitation/create', { mode: 'form' }, { elicitation: { url: {} } }, 'elicitation.form'],
    ['elicitation/create', { mode: 'url' }, { elicitation: {} }, 'elicitation.url'],
    ['elicitation/create', { mode: 'url' }, { elicitation: { form: {} } }, 'elicitation.url'],
    ['elicitation/create', { mode: 'url' }, { elicitation: { form: {}, url: {} } }, 'nothing'],
    ['tasks/get', {}, {}, 'tasks'],
    ['tasks/result', {}, { tasks: {} }, 'nothing'],
    ['tasks/list', {}, { tasks: {} }, 'tasks.list'],
    ['tasks/cancel', {}, { tasks: { list: {}, cancel: {} } }, 'nothing'],
  ])('%s %o of a client with %o: %s', (method, params, capabilities, what) => {
    expect(lacks(method, params, capabilities)).toBe(what);
  });

  it('is nothing for ping, and for methods of which MCP names no capability, whatever their names', () => {
    for (const method of ['ping', 'vendor/ask', 'constructor', '__proto__', 'toString'])
      expect(lacks(method, {}, {})).toBe('nothing');
  });

  it('stands for nothing if it is null or false, or no object at all', () => {
    expect(lacks('roots/list', {}, { roots: null })).toBe('roots');
    expect(lacks('roots/list', {}, { roots: false })).toBe('roots');
    expect(lacks('elicitation/create', {}, { elicitation: true })).toBe('nothing');
    expect(lacks('sampling/createMessage', { tools: [] }, { sampling: 'yes' })).toBe('sampling.tools');
  });

  it('is named as the client would have to declare it, and says whether it takes such requests at all', () => {
    const request = { jsonrpc: '2.0', id: 1, method: 'elicitation/create', params: { mode: 'url' } } as const;
    const requiredCapabilities = { elicitation: { url: {} } };
    expect(undeclaredOf(request, {})).toEqual({ name: 'elicitation.url', requiredCapabilities, isPart: false });
    expect(undeclaredOf(request, { elicitation: {} })).toMatchObject({ requiredCapabilities, isPart: true });
    expect(undeclaredOf({ jsonrpc: '2.0', id: 1, method: 'roots/list' }, {})).toMatchObject({
      requiredCapabilities: { roots: {} },
    });
  });
});
