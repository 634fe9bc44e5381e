/** Where places are kept if nobody says otherwise. SPEC: CONNECT-PLACE. */
import path from 'node:path';
import type { Environment } from '../read-environment.ts';

export interface Home {
  readonly environment: Environment;
  readonly platform: NodeJS.Platform;
  readonly homeFolder: string;
}

export function stateFolder({ environment, platform, homeFolder }: Home): string {
  return path.join(baseFolder(environment, platform, homeFolder), 'throughline', 'connect');
}

function baseFolder(environment: Environment, platform: NodeJS.Platform, homeFolder: string): string {
  if (platform === 'win32') return environment['LOCALAPPDATA'] ?? path.join(homeFolder, 'AppData', 'Local');
  const given = environment['XDG_STATE_HOME'] ?? '';
  return path.isAbsolute(given) ? given : path.join(homeFolder, '.local', 'state');
}
