/** One invocation, apart from the process that it runs in: arguments in, text out, an exit code. */
import { hashToken, makeSecret } from './auth-tokens.ts';
import { ConfigError } from './faults.ts';
import { COMMANDS } from './command-table.ts';
import { completeConnect } from './connect/complete-connect.ts';
import type { ConnectRequest } from './connect/connect-request.ts';
import { renderHelp } from './help.ts';
import { loadSettings } from './load-settings.ts';
import { parseArguments } from './parse-arguments.ts';
import { printSettings } from './print-settings.ts';
import { renderFaults } from './render-faults.ts';
import type { Environment } from './read-environment.ts';
import type { Operation } from './operate/operations.ts';
import type { Role } from './option-table.ts';
import type { Settings } from './settings.ts';

export interface Invocation {
  readonly argv: readonly string[];
  readonly environment: Environment;
  readonly cwd: string;
  readonly version: string;
  readonly demoModule: string;
  out(text: string): void;
  err(text: string): void;
  readStdin(): Promise<string>;
  /** Runs a role until it is told to stop; resolves with the exit code. */
  runRole(role: Role, settings: Settings): Promise<number>;
  /** Runs an operator's command to its end; resolves with the exit code. */
  operate(operation: Operation, settings: Settings): Promise<number>;
  /** Serves a stdio client until it goes; resolves with the exit code. */
  connect(request: ConnectRequest): Promise<number>;
}

/** 0: done. 1: something outside the configuration failed. 2: the command line or the configuration is wrong. */
export async function run(invocation: Invocation): Promise<number> {
  const given = parseArguments(invocation.argv);
  const { command } = given;
  try {
    switch (command.name) {
      case 'faulty': {
        const user = given.asked === null ? 'serve' : COMMANDS[given.asked].user;
        // For the faults of all layers in one message.
        if (user !== null) loadSettings({ ...invocation, arguments: given }, user);
        throw new ConfigError(given.faults);
      }
      case 'help':
        invocation.out(renderHelp(invocation.version, command.of));
        return 0;
      case 'version':
        invocation.out(`${invocation.version}\n`);
        return 0;
      case 'secret-new':
      case 'secret-hash':
        if (given.faults.length > 0) throw new ConfigError(given.faults);
        return command.name === 'secret-new' ? printSecret(invocation) : await printHash(invocation);
      case 'config-check':
        loadSettings({ ...invocation, arguments: given }, 'serve');
        invocation.out('ok\n');
        return 0;
      case 'config-print':
        invocation.out(printSettings(loadSettings({ ...invocation, arguments: given }, 'serve')));
        return 0;
      case 'connect':
        if (given.configFile !== undefined)
          throw new ConfigError([{ where: '--config', problem: 'is no option of connect; leave it out.' }]);
        return await invocation.connect(completeConnect(command.line, invocation));
      case 'operate':
        return await invocation.operate(
          command.operation,
          loadSettings({ ...invocation, arguments: given }, 'operate'),
        );
      case 'run':
        return await invocation.runRole(command.role, loadSettings({ ...invocation, arguments: given }, command.role));
    }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    invocation.err(`throughline: ${renderFaults(error.faults, given.asked)}\n`);
    return 2;
  }
}

function printSecret(invocation: Invocation): number {
  invocation.out(`${makeSecret()}\n`);
  return 0;
}

async function printHash(invocation: Invocation): Promise<number> {
  // The line break that a shell's echo adds is no part of the token.
  const token = (await invocation.readStdin()).replace(/\r?\n$/, '');
  if (token === '') {
    invocation.err('throughline: no token on stdin; write for example: printf %s "$TOKEN" | throughline secret hash\n');
    return 2;
  }
  invocation.out(`${hashToken(token)}\n`);
  return 0;
}
