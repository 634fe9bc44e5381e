/** A person behind an official MCP client: is shown forms, and answers them when told to. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { waitUntil } from '@throughline/testkit/processes';
import { say } from '../story/tell-story.ts';

export interface Person extends AsyncDisposable {
  readonly client: Client;
  readonly sessionId: string;
  /** The forms that were shown, in order. */
  readonly shown: readonly string[];
  /** Waits until so many forms were shown. */
  form(count: number): Promise<unknown>;
  /** Answers the newest form. */
  answer(text: string): void;
}

export async function connectPerson(url: string): Promise<Person> {
  const shown: string[] = [];
  let answer: (text: string) => void = () => undefined;
  const client = new Client({ name: 'person', version: '1.0.0' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler('elicitation/create', ({ params }) => {
    shown.push(params.message);
    say(`   the person is shown a form: ${params.message}`);
    return new Promise((resolve) => {
      answer = (text) => {
        say(`   the person answers: ${text}`);
        resolve({ action: 'accept', content: { answer: text } });
      };
    });
  });
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  await client.listTools();
  return {
    client,
    sessionId: transport.sessionId ?? '',
    shown,
    form: (count) => waitUntil(`form ${count}`, () => shown.length >= count, 30_000),
    answer: (text) => {
      answer(text);
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

/** What a tool answered, as text. */
export function textOf({ content }: { readonly content: readonly { readonly type: string }[] }): string {
  return content.map((item) => ('text' in item ? String(item.text) : '')).join('');
}
