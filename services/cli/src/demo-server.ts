/** The demo server as a module that a worker can be pointed at. */
export { default } from '@throughline/worker/demo-server';
