/** A command line of `connect` with what the process has: the working directory and the environment. SPEC: CONNECT-OPTIONS. */
import path from 'node:path';
import { ConfigError } from '../faults.ts';
import type { Fault } from '../faults.ts';
import type { Environment } from '../read-environment.ts';
import type { ConnectLine, ConnectRequest } from './connect-request.ts';

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** Throws a {@link ConfigError} that names variables which are not set; their values are secrets. */
export function completeConnect(
  line: ConnectLine,
  { environment, cwd }: { readonly environment: Environment; readonly cwd: string },
): ConnectRequest {
  const faults: Fault[] = [];
  const headers: Record<string, string> = {};
  for (const [name, text] of line.headers) {
    const value = text.replace(VARIABLE, (_whole, variable: string) => {
      const found = environment[variable];
      if (found === undefined || !/^[\x20-\x7e]+$/.test(found.trim()))
        faults.push({
          where: `--header ${name}`,
          problem: `the environment variable ${variable} is ${found === undefined ? 'not set' : 'empty, or no header'}.`,
        });
      return found?.trim() ?? '';
    });
    headers[name] = value;
  }
  if (faults.length > 0) throw new ConfigError(faults);
  const absolute = (file: string | null): string | null => (file === null ? null : path.resolve(cwd, file));
  return {
    ...line,
    headers,
    place: line.place ?? cwd,
    stateFolder: absolute(line.stateFolder),
    tokenFile: absolute(line.tokenFile),
    login: { ...line.login, clientSecretFile: absolute(line.login.clientSecretFile) },
  };
}
