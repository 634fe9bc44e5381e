/** For programs that come and go: the place of a client in files, and what a former process left. Needs Node. */
export { FileCheckpointStore } from './file-checkpoint-store.ts';
export { readKeptSession } from '../kept-session.ts';
export type { KeptSession } from '../kept-session.ts';
