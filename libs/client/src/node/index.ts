/** What needs Node: the place of a client in files. */
export { FileCheckpointStore } from './file-checkpoint-store.ts';
