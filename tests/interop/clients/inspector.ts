/** The Inspector's command line: each call is a process and a session of its own. It says nothing of progress. */
import process from 'node:process';
import { runQuietly } from '../../../infra/docker/docker-command.ts';
import { DriverError } from '../interop-client.ts';
import type { ClientSource } from '../interop-client.ts';
import { npmProgram } from './npm.ts';

const NAME = 'Inspector CLI';
const PACKAGE = '@modelcontextprotocol/inspector';
const VERSION = '2.12.0';
const CALL_MS = 120_000;

export const inspectorClient: ClientSource = {
  name: NAME,
  async prepare(options) {
    const program = await npmProgram(PACKAGE, VERSION, 'mcp-inspector', options);
    if ('failed' in program) return { name: NAME, skipped: program.failed };
    const ask = async (url: string, ...method: readonly string[]): Promise<string> => {
      const args = [program.file, '--cli', url, '--transport', 'http', '--method', ...method];
      const { code, output, errors } = await runQuietly(process.execPath, args, { deadlineMs: CALL_MS });
      if (code === 0) return output;
      throw new DriverError((errors.trim() === '' ? output : errors).trim().slice(-2000));
    };
    return {
      name: NAME,
      version: VERSION,
      reportsProgress: false,
      async connect(url) {
        await ask(url, 'tools/list');
        return {
          async callTool(tool, args) {
            const pairs = Object.entries(args).map(([name, value]) => `${name}=${String(value)}`);
            const given = pairs.length === 0 ? [] : ['--tool-arg', ...pairs];
            const said = JSON.parse(await ask(url, 'tools/call', '--tool-name', tool, ...given)) as {
              content?: { text?: string }[];
            };
            return (said.content ?? []).map(({ text }) => text ?? '').join('\n');
          },
          [Symbol.asyncDispose]: () => Promise.resolve(),
        };
      },
    };
  },
};
