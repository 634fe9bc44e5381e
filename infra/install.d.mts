/** Path of the Node 24 that is installed with the development dependencies. */
export function nodeBinary(root: string): string;
/** What is wrong with node_modules in a few words, or null. */
export function findStaleInstall(root: string): string | null;
/** Installs if needed. Returns an exit code. */
export function ensureInstalled(root: string): number;
