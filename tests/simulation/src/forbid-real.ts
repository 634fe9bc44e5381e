/** While a run goes on, real time and real chance throw, and are told of: a run that used them would not repeat. */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

type Methods = Record<string, unknown>;

export interface Forbidden {
  /** What was called, if anything was. */
  readonly calls: readonly string[];
  restore(): void;
}

/** `setImmediate` stays: the scheduler lets promises settle by it, and nothing else may know of it. */
export function forbidReal(): Forbidden {
  const calls: string[] = [];
  const undo: (() => void)[] = [];
  const forbid = (holder: object, path: string, names: readonly string[]): void => {
    const methods = holder as Methods;
    for (const name of names) {
      const original = methods[name];
      undo.push(() => {
        methods[name] = original;
      });
      methods[name] = () => {
        calls.push(`${path}${name}`);
        throw new Error(`${path}${name} is real; a simulated process has a clock and a chance of its own`);
      };
    }
  };
  forbid(globalThis, '', ['setTimeout', 'setInterval']);
  forbid(Math, 'Math.', ['random']);
  forbid(Date, 'Date.', ['now']);
  forbid(performance, 'performance.', ['now']);
  forbid(globalThis.crypto, 'crypto.', ['getRandomValues', 'randomUUID']);
  forbid(crypto, 'node:crypto ', ['randomBytes', 'randomInt', 'randomUUID', 'randomFillSync', 'randomFill']);
  forbid(process, 'process.', ['hrtime']);
  syncBuiltinESMExports();
  return {
    calls,
    restore() {
      for (const each of undo.splice(0)) each();
      syncBuiltinESMExports();
    },
  };
}
