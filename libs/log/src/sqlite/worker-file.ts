/**
 * The one place that knows where the worker's entry lies: beside this module. A bundler makes `sqlite-worker.ts` a
 * second entry point, written as `sqlite-worker.js` into the directory of the bundle that contains this module.
 */
export function workerFile(): URL {
  return import.meta.url.endsWith('.ts')
    ? new URL('./sqlite-worker.ts', import.meta.url)
    : new URL('./sqlite-worker.js', import.meta.url);
}
