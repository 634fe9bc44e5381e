/** The tools of the faulty server. */
import type { JsonRpcMessage, JsonRpcRequest } from '@throughline/protocol';
import type { FaultySession } from './faulty-session.ts';
import { say } from './say.ts';
import { announceScript, countScript, textResult } from './script-words.ts';
import { waitForListener } from './say.ts';
import type { ScriptedStream } from './scripted-stream.ts';
import { speak } from './speak.ts';
import type { World } from './world.ts';

const schema = (properties: Record<string, unknown>): Record<string, unknown> => ({ type: 'object', properties });
const NUMBER = schema({ to: { type: 'integer', minimum: 0, maximum: 1000 } });

export const TOOLS = [
  { name: 'echo', description: 'Gives back its text', inputSchema: schema({ text: { type: 'string' } }) },
  { name: 'count', description: 'Logs `to` events on the stream of the call, then answers', inputSchema: NUMBER },
  { name: 'announce', description: 'Answers, and logs `to` events on the standalone stream', inputSchema: NUMBER },
  { name: 'progress', description: 'Reports `to` steps of progress, then answers', inputSchema: NUMBER },
  {
    name: 'ask',
    description: 'Elicits an answer from the person',
    inputSchema: schema({ question: { type: 'string' } }),
  },
  {
    name: 'sample',
    description: "Has the client's model say something",
    inputSchema: schema({ prompt: { type: 'string' } }),
  },
] as const;

export interface Call {
  readonly world: World;
  readonly session: FaultySession;
  readonly stream: ScriptedStream;
  readonly request: JsonRpcRequest;
}

/** Runs a call to its end, which is said on its stream. Never rejects. */
export async function runTool({ world, session, stream, request }: Call): Promise<void> {
  const name = String(request.params?.['name']);
  const args = (request.params?.['arguments'] ?? {}) as Readonly<Record<string, unknown>>;
  const to = Math.min(1000, Math.max(0, Number(args['to'] ?? 0) || 0));
  const answer = (text: string, isError = false): void => say(world, stream, textResult(request.id, text, isError));
  world.runs.push(name);
  switch (name) {
    case 'echo':
      answer(String(args['text'] ?? ''));
      break;
    case 'count':
      await speak(world, session, stream, countScript(to, request.id));
      break;
    case 'announce':
      answer(`announcing ${to}`);
      void announce(world, session, to);
      break;
    case 'progress':
      for (const message of progressScript(to, request)) say(world, stream, message);
      answer(`made ${to} steps`);
      break;
    case 'ask':
      await askClient(session, 'elicitation/create', {
        message: String(args['question'] ?? ''),
        requestedSchema: schema({ answer: { type: 'string' } }),
      });
      break;
    case 'sample':
      await askClient(session, 'sampling/createMessage', {
        messages: [{ role: 'user', content: { type: 'text', text: String(args['prompt'] ?? '') } }],
        maxTokens: 10,
      });
      break;
    default:
      answer(`there is no tool ${name}`, true);
  }

  async function askClient(from: FaultySession, method: string, params: Record<string, unknown>): Promise<void> {
    try {
      const response = await from.ask(method, params, (asked) => say(world, stream, asked));
      answer(JSON.stringify(response.result ?? response.error), response.error !== undefined);
    } catch (error) {
      answer(String(error), true);
    }
  }
}

async function announce(world: World, session: FaultySession, to: number): Promise<void> {
  const standalone = session.standalone();
  await waitForListener(world, standalone);
  await speak(world, session, standalone, announceScript(to));
}

function progressScript(to: number, { params }: JsonRpcRequest): JsonRpcMessage[] {
  const progressToken = (params?.['_meta'] as { progressToken?: unknown } | undefined)?.progressToken;
  if (progressToken === undefined) return [];
  return Array.from({ length: to }, (_, index) => ({
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken, progress: index + 1, total: to },
  }));
}
