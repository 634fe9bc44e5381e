/** The official Python client, from PyPI, beside whatever the machine's Python has. */
import { fileURLToPath } from 'node:url';
import { cached, step } from '../cache.ts';
import { connectDriven } from '../driven-client.ts';
import type { ClientSource } from '../interop-client.ts';

const VERSION = '2.3.0';
const DRIVER = fileURLToPath(new URL('../drivers/python/drive.py', import.meta.url));

export const pythonClient: ClientSource = {
  name: 'Python',
  async prepare(options) {
    const install = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', '--root-user-action=ignore'];
    const found = await cached(`python-mcp-${VERSION}`, options, (folder) =>
      step('python3', [...install, '--target', folder, `mcp==${VERSION}`]),
    );
    if ('failed' in found) return { name: 'Python', skipped: found.failed };
    const driver = { file: 'python3', args: [DRIVER], environment: { PYTHONPATH: found.folder } };
    return {
      name: 'Python',
      version: VERSION,
      reportsProgress: true,
      connect: (url) => connectDriven(driver, url),
    };
  },
};
