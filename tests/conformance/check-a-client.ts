import process from 'node:process';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { FAULT_NAMES, formatClientCheck, runClientCheck } from '@throughline/client/testing';

const faults = FAULT_NAMES.filter((name) => process.argv.length < 3 || process.argv.includes(name));
const report = await runClientCheck(
  async (url, reports) => {
    const client = new Client({ name: 'my-client', version: '1.0.0' });
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => reports.event(params.data));
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return {
      async callTool(name, args) {
        const { content } = await client.callTool({ name, arguments: args });
        const [first] = content as { text: string }[];
        return first?.text ?? '';
      },
      close: () => client.close(),
    };
  },
  { faults },
);
process.stdout.write(`${formatClientCheck(report)}\n`);
process.exitCode = report.wrong.length === 0 ? 0 : 1;
