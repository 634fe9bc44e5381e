/** A configuration that serves one module, so that its sessions outlive their workers. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ClusterOptions } from '@throughline/testkit/processes';

/** Options of a cluster: `throughline.yaml` with one server, at `/mcp` and `/mcp/<name>`. */
export function serveModule(name: string, file: string): Required<Pick<ClusterOptions, 'args' | 'prepare'>> {
  return {
    args: ['--config', 'throughline.yaml'],
    prepare(folder) {
      const config = `servers:\n  ${name}: { module: ${JSON.stringify(file)}, onOwnerLoss: restore }\n`;
      writeFileSync(path.join(folder, 'throughline.yaml'), config);
    },
  };
}
