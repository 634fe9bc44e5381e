/** The prompts of the demo. */
import { completable } from '@modelcontextprotocol/server';
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { PIXEL_PNG_BASE64 } from './demo-content.ts';

const CITIES = ['paris', 'park', 'party', 'test'];

export function addDemoPrompts(server: McpServer): void {
  server.registerPrompt('test_simple_prompt', { title: 'Simple', description: 'A prompt without arguments.' }, () => ({
    messages: [{ role: 'user', content: { type: 'text', text: 'This is a simple prompt for testing.' } }],
  }));

  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      title: 'With arguments',
      description: 'A prompt with two arguments.',
      argsSchema: z.object({
        arg1: completable(z.string().describe('First test argument'), (value) =>
          CITIES.filter((city) => city.startsWith(value)),
        ),
        arg2: z.string().describe('Second test argument'),
      }),
    },
    ({ arg1, arg2 }) => ({
      messages: [
        { role: 'user', content: { type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` } },
      ],
    }),
  );

  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    {
      title: 'With embedded resource',
      description: 'A prompt that embeds a resource.',
      argsSchema: z.object({ resourceUri: z.string().describe('URI of the resource to embed') }),
    },
    ({ resourceUri }) => ({
      messages: [
        {
          role: 'user',
          content: {
            type: 'resource',
            resource: {
              uri: resourceUri,
              mimeType: 'text/plain',
              text: 'Embedded resource content for testing.',
            },
          },
        },
        { role: 'user', content: { type: 'text', text: 'Please process the embedded resource above.' } },
      ],
    }),
  );

  server.registerPrompt(
    'test_prompt_with_image',
    { title: 'With image', description: 'A prompt that holds an image.' },
    () => ({
      messages: [
        { role: 'user', content: { type: 'image', data: PIXEL_PNG_BASE64, mimeType: 'image/png' } },
        { role: 'user', content: { type: 'text', text: 'Please analyze the image above.' } },
      ],
    }),
  );
}
