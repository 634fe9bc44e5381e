/** The tools of the demo that ask the client. The questions go on the stream of the call that asks. */
import type { CallToolResult, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

function text(value: string): CallToolResult {
  return { content: [{ type: 'text', text: value }] };
}

const OPTIONS = ['option1', 'option2', 'option3'];

export function addDemoQuestions(server: McpServer): void {
  server.registerTool(
    'test_sampling',
    {
      title: 'Sampling',
      description: "Asks the client's model.",
      inputSchema: z.object({ prompt: z.string().describe('The prompt to send to the LLM') }),
    },
    async ({ prompt }, ctx) => {
      const { content } = await ctx.mcpReq.send({
        method: 'sampling/createMessage',
        params: { messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 100 },
      });
      const first = Array.isArray(content) ? content[0] : content;
      return text(`LLM response: ${first?.type === 'text' ? first.text : 'No response'}`);
    },
  );

  server.registerTool(
    'test_elicitation',
    {
      title: 'Elicitation',
      description: 'Asks the user for a name and an address.',
      inputSchema: z.object({ message: z.string().describe('The message to show the user') }),
    },
    async ({ message }, ctx) => {
      const { action, content } = await ctx.mcpReq.send({
        method: 'elicitation/create',
        params: {
          message,
          requestedSchema: {
            type: 'object',
            properties: {
              username: { type: 'string', description: "User's response" },
              email: { type: 'string', description: "User's email address" },
            },
            required: ['username', 'email'],
          },
        },
      });
      return text(`User response: action=${action}, content=${JSON.stringify(content ?? {})}`);
    },
  );

  server.registerTool(
    'test_elicitation_sep1034_defaults',
    { title: 'Elicitation with defaults', description: 'Asks the user with a form that has defaults.' },
    async (ctx) => {
      const { action, content } = await ctx.mcpReq.send({
        method: 'elicitation/create',
        params: {
          message: 'Please review and update the form fields with defaults',
          requestedSchema: {
            type: 'object',
            properties: {
              name: { type: 'string', description: 'User name', default: 'John Doe' },
              age: { type: 'integer', description: 'User age', default: 30 },
              score: { type: 'number', description: 'User score', default: 95.5 },
              status: {
                type: 'string',
                description: 'User status',
                enum: ['active', 'inactive', 'pending'],
                default: 'active',
              },
              verified: { type: 'boolean', description: 'Verification status', default: true },
            },
            required: [],
          },
        },
      });
      return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`);
    },
  );

  server.registerTool(
    'test_elicitation_sep1330_enums',
    { title: 'Elicitation with choices', description: 'Asks the user with a form that has all kinds of choices.' },
    async (ctx) => {
      const { action, content } = await ctx.mcpReq.send({
        method: 'elicitation/create',
        params: {
          message: 'Please select options from the enum fields',
          requestedSchema: {
            type: 'object',
            properties: {
              untitledSingle: { type: 'string', description: 'Select one option', enum: OPTIONS },
              titledSingle: {
                type: 'string',
                description: 'Select one option with titles',
                oneOf: [
                  { const: 'value1', title: 'First Option' },
                  { const: 'value2', title: 'Second Option' },
                  { const: 'value3', title: 'Third Option' },
                ],
              },
              legacyEnum: {
                type: 'string',
                description: 'Select one option (legacy)',
                enum: ['opt1', 'opt2', 'opt3'],
                enumNames: ['Option One', 'Option Two', 'Option Three'],
              },
              untitledMulti: {
                type: 'array',
                description: 'Select multiple options',
                minItems: 1,
                maxItems: 3,
                items: { type: 'string', enum: OPTIONS },
              },
              titledMulti: {
                type: 'array',
                description: 'Select multiple options with titles',
                minItems: 1,
                maxItems: 3,
                items: {
                  anyOf: [
                    { const: 'value1', title: 'First Choice' },
                    { const: 'value2', title: 'Second Choice' },
                    { const: 'value3', title: 'Third Choice' },
                  ],
                },
              },
            },
            required: [],
          },
        },
      });
      return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`);
    },
  );
}
