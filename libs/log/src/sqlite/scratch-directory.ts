/** For tests: a directory that is removed at the end, and logs in it that are closed before. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log } from '../port.ts';
import { openSqliteLogWithControls } from './index.ts';
import type { SqliteControls, SqliteLogOptions } from './index.ts';

// Each log starts a thread, and each thread would strip the types of its sources anew.
process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'throughline-compile-cache');

export interface ScratchDirectory {
  readonly file: string;
  path(name: string): string;
  open(options?: Partial<SqliteLogOptions>): Promise<{ log: Log; controls: SqliteControls }>;
  dispose(): Promise<void>;
}

export function makeScratchDirectory(): ScratchDirectory {
  const directory = mkdtempSync(join(tmpdir(), 'log-'));
  const logs: Log[] = [];
  const file = join(directory, 'log.db');
  return {
    file,
    path: (name) => join(directory, name),
    async open(options = {}) {
      const opened = await openSqliteLogWithControls({ file, ...options });
      logs.push(opened.log);
      return opened;
    },
    async dispose() {
      await Promise.all(logs.map((log) => log.close()));
      rmSync(directory, { recursive: true });
    },
  };
}
