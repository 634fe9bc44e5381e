import { fileURLToPath } from 'node:url';

/** The module of the demo server, in the sources and in the package. Entries of the package lie beside each other. */
const FILE = import.meta.url.endsWith('.ts') ? './demo-server.ts' : './demo-server.js';

/** Path of the server that is served when none is configured. */
export const DEMO_MODULE = fileURLToPath(new URL(FILE, import.meta.url));
