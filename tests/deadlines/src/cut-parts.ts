/** The log and the MCP host of a process, with a cutter in every operation. */
import type { Clock, Log } from '@throughline/log';
import type { JsonRpcId, JsonRpcMessage } from '@throughline/protocol';
import type { HostSession, McpHost } from '@throughline/worker/host';
import type { Cutter } from './cutter.ts';

export function cutLog(log: Log, process: string, cutter: Cutter): Log {
  const wait = <T>(what: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> =>
    cutter.wait(process, what, work, signal);
  return {
    description: log.description,
    describe: () => wait('describe', () => log.describe()),
    onGrown: (listener) => log.onGrown(listener),
    append: (to, records) => wait(`append ${to.topic}`, () => log.append(to, records)),
    read: (from, position, options) =>
      wait(`read ${from.topic}`, () => log.read(from, position, options), options?.signal),
    bounds: (of) => wait(`bounds ${of.topic}`, () => log.bounds(of)),
    async join(options) {
      const membership = await wait('join', () => log.join(options));
      return {
        member: membership.member,
        assigned: () => membership.assigned(),
        commit: (partition, offset) => wait('commit', () => membership.commit(partition, offset)),
        leave: () => wait('leave', () => membership.leave()),
      };
    },
    committed: (group) => wait('committed', () => log.committed(group)),
    close: () => wait('close', () => log.close()),
  };
}

/**
 * A server with a tool that counts up with progress, one that asks the client, and one that stops only when it is
 * cancelled. Each operation of the host is a wait of the worker.
 */
export function cutHost(process: string, clock: Clock, cutter: Cutter): McpHost {
  const sessions = new Set<HostSession>();
  const wait = <T>(what: string, work: () => Promise<T>): Promise<T> => cutter.wait(process, what, work);
  return {
    kind: 'cut',
    open: (_context, { onMessage }) =>
      wait('open', () => {
        const running = new Map<JsonRpcId, () => void>();
        const asked = new Map<JsonRpcId, JsonRpcId>();
        let isOver = false;
        const say = (message: JsonRpcMessage, related?: JsonRpcId): void => {
          if (!isOver) void onMessage(message, related);
        };
        const answer = (id: JsonRpcId, result: object): void => {
          running.get(id)?.();
          running.delete(id);
          say({ jsonrpc: '2.0', id, result: result }, id);
        };
        const text = (value: string): object => ({ content: [{ type: 'text', text: value }] });
        const call = (id: JsonRpcId, tool: unknown): void => {
          const step = (progress: number): void => {
            if (progress > 3) {
              answer(id, text('counted'));
              return;
            }
            say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: id, progress } }, id);
            running.set(
              id,
              clock.setTimer(100, () => {
                step(progress + 1);
              }),
            );
          };
          if (tool === 'count') step(1);
          else if (tool === 'ask') {
            asked.set(`q-${String(id)}`, id);
            say({ jsonrpc: '2.0', id: `q-${String(id)}`, method: 'elicitation/create', params: {} }, id);
          } else {
            running.set(id, () => undefined);
            say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: id, progress: 1 } }, id);
          }
        };
        const session: HostSession = {
          deliver: (message) =>
            wait(`deliver ${'method' in message ? message.method : 'answer'}`, () => {
              if (!('method' in message)) {
                const of = message.id === null ? undefined : asked.get(message.id);
                if (of !== undefined) answer(of, text('answered'));
              } else if (!('id' in message)) {
                const id = message.params?.['requestId'] as JsonRpcId | undefined;
                if (message.method === 'notifications/cancelled' && id !== undefined) running.delete(id);
              } else if (message.method === 'initialize')
                answer(message.id, {
                  protocolVersion: message.params?.['protocolVersion'],
                  capabilities: { tools: {} },
                  serverInfo: { name: 'cut', version: '1' },
                });
              else if (message.method === 'tools/list')
                answer(message.id, { tools: ['count', 'ask', 'wait'].map((name) => ({ name, inputSchema: {} })) });
              else call(message.id, message.params?.['name']);
              return Promise.resolve();
            }),
          close: () =>
            wait('close of the server', () => {
              isOver = true;
              for (const cancel of running.values()) cancel();
              sessions.delete(session);
              return Promise.resolve();
            }),
        };
        sessions.add(session);
        return Promise.resolve(session);
      }),
    async close() {
      await Promise.all([...sessions].map((session) => session.close()));
    },
  };
}
