/** Opens the file, makes the tables of format v1 in a new one, and refuses what it cannot read. */
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, linkSync, openSync, statSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import { errorText, LogError } from '../errors.ts';
import type { WorkerSettings } from './messages.ts';
import { allRefs, OFFSET_SPAN } from './slots.ts';
import { isBusy, SQLITE, sqliteCode } from './sqlite-error.ts';

/** Marks a file as a log of this product: "THLG". */
const APPLICATION_ID = 0x54484c47;
/** Format of the file. A change that older code would misread is another number. */
const FORMAT = 1;
const OPEN_DEADLINE_MS = 5000;
/** Bytes to which the write-ahead log is cut back after a checkpoint. */
const WAL_BYTES = 32 * 1024 * 1024;

const SCHEMA = `
CREATE TABLE settings (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE partitions (
  slot INTEGER PRIMARY KEY, topic TEXT NOT NULL, partition INTEGER NOT NULL,
  start INTEGER NOT NULL, next INTEGER NOT NULL, last_ms INTEGER NOT NULL);
CREATE TABLE records (id INTEGER PRIMARY KEY, timestamp_ms INTEGER NOT NULL, key BLOB, value BLOB, headers BLOB);
CREATE TABLE newest (slot INTEGER NOT NULL, key BLOB NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (slot, key)) WITHOUT ROWID;
CREATE TABLE garbage (id INTEGER PRIMARY KEY, due_ms INTEGER NOT NULL);
CREATE INDEX garbage_due ON garbage (due_ms);
CREATE TABLE groups (name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE members (
  "group" TEXT NOT NULL, member TEXT NOT NULL, beat INTEGER NOT NULL, wall_ms INTEGER NOT NULL,
  PRIMARY KEY ("group", member)) WITHOUT ROWID;
CREATE TABLE assignments (
  "group" TEXT NOT NULL, partition INTEGER NOT NULL, member TEXT NOT NULL, PRIMARY KEY ("group", partition)) WITHOUT ROWID;
CREATE VIEW readable AS
  SELECT topic, partition, id & ${OFFSET_SPAN - 1} AS offset, strftime('%FT%R:%fZ', timestamp_ms / 1000.0, 'unixepoch') AS time,
    CAST(key AS TEXT) AS key, CAST(value AS TEXT) AS value
  FROM records JOIN partitions ON slot = id >> 43;
`;

export interface OpenDatabase {
  readonly db: DatabaseSync;
  readonly clusterId: string;
  readonly partitions: number;
}

/** Errors: `LOG_INCOMPATIBLE`, `LOG_UNAVAILABLE`; both name the fix. */
export function openDatabase(settings: WorkerSettings): OpenDatabase {
  const { file } = settings;
  // Made here, not by SQLite: the log holds the secret that signs session ids, and its side files get the same mode.
  touch(file);
  let db: DatabaseSync | null = null;
  try {
    db = new DatabaseSync(file, { timeout: 0 });
    const opened = prepareFile(db, settings);
    if (settings.maxBytes !== null) {
      const pageBytes = Number(readOne(db, 'PRAGMA page_size'));
      db.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(settings.maxBytes / pageBytes))}`);
    }
    return opened;
  } catch (error) {
    db?.close();
    throw error instanceof LogError ? error : openError(file, error);
  }
}

/**
 * Makes an empty file of mode 0600 unless there is one. Never opens an existing file: closing it would drop the locks
 * that other connections of this process hold on it, and with them SQLite's protection.
 */
function touch(file: string): void {
  if (existsSync(file)) return;
  const fresh = `${file}.${randomUUID()}.new`;
  try {
    closeSync(openSync(fresh, 'wx', 0o600));
    try {
      linkSync(fresh, file);
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error;
    } finally {
      unlinkSync(fresh);
    }
  } catch (error) {
    const code = systemCode(error);
    const fix =
      code === 'ENOENT'
        ? `the directory ${dirname(file)} does not exist: create it or choose another file`
        : `${file} cannot be created (${code}): give this user write access to its directory, or choose another file`;
    throw new LogError('LOG_UNAVAILABLE', fix, {}, error);
  }
}

function systemCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

function prepareFile(db: DatabaseSync, settings: WorkerSettings): OpenDatabase {
  const { file } = settings;
  const isNew = retryBusy(() => {
    // In this order: another process makes tables and mark at once, and between two reads it may do so.
    const tables = readOne(db, 'SELECT count(*) FROM sqlite_schema');
    const application = readOne(db, 'PRAGMA application_id');
    if (application !== APPLICATION_ID && tables !== 0) throw notALog(file);
    return tables === 0;
  });
  retryBusy(() => {
    if (readOne(db, 'PRAGMA journal_mode = WAL') !== 'wal')
      throw new LogError(
        'LOG_UNAVAILABLE',
        `${file} lies on a file system without shared memory (a network share?): choose a file on a local disk`,
      );
  });
  db.exec(`PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${WAL_BYTES}; PRAGMA wal_autocheckpoint = 1000;`);
  if (isNew)
    retryBusy(() => {
      createTables(db, settings.partitions);
    });
  const format = Number(readOne(db, 'PRAGMA user_version'));
  if (format > FORMAT)
    throw new LogError(
      'LOG_INCOMPATIBLE',
      `${file} has format ${format}, and this version reads up to ${FORMAT}: use the version that wrote it or a newer one, or choose another file`,
    );
  return {
    db,
    clusterId: String(readOne(db, `SELECT value FROM settings WHERE name = 'cluster_id'`)),
    partitions: Number(readOne(db, `SELECT value FROM settings WHERE name = 'partitions'`)),
  };
}

/** Of several processes that find an empty file, the first makes the tables. */
function createTables(db: DatabaseSync, partitions: number): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    if (readOne(db, 'SELECT count(*) FROM sqlite_schema') === 0) {
      db.exec(SCHEMA);
      const setting = db.prepare('INSERT INTO settings VALUES (?, ?)');
      setting.run('cluster_id', randomUUID());
      setting.run('partitions', partitions);
      const insert = db.prepare('INSERT INTO partitions VALUES (?, ?, ?, 0, 0, 0)');
      allRefs(partitions).forEach((ref, slot) => insert.run(slot, ref.topic, ref.partition));
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT};`);
    }
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function openError(file: string, error: unknown): LogError {
  switch (sqliteCode(error)) {
    case SQLITE.notADatabase:
      return notALog(file, error);
    case SQLITE.corrupt:
      return new LogError(
        'LOG_INCOMPATIBLE',
        `${file} is damaged (${errorText(error)}): restore it from a copy, or move it away; a new file is a new log, and sessions of the old one end`,
        {},
        error,
      );
    case SQLITE.cantOpen:
    case SQLITE.readonly:
      if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true)
        return new LogError(
          'LOG_UNAVAILABLE',
          `${file} is a folder: name a file in it, for example ${join(file, 'log.db')}`,
          {},
          error,
        );
      return new LogError(
        'LOG_UNAVAILABLE',
        `${file} cannot be opened for writing: give this user write access to it and its directory, or choose another file`,
        {},
        error,
      );
    default:
      return new LogError('LOG_UNAVAILABLE', `${file} cannot be opened: ${errorText(error)}`, {}, error);
  }
}

function notALog(file: string, cause?: unknown): LogError {
  return new LogError(
    'LOG_INCOMPATIBLE',
    `${file} is no Throughline log: choose another file, or move this one away`,
    {},
    cause,
  );
}

/** Rows as arrays: half the price of objects. */
export function prepareRows(db: DatabaseSync, sql: string): StatementSync {
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  return statement;
}

function readOne(db: DatabaseSync, sql: string): unknown {
  const row = prepareRows(db, sql).get() as unknown as readonly unknown[] | undefined;
  return row?.[0];
}

const pause = new Int32Array(new SharedArrayBuffer(4));

/** Tries again while another process has the file, up to a deadline. Blocks this thread, which is a worker's. */
export function retryBusy<T>(run: () => T, deadlineMs = OPEN_DEADLINE_MS): T {
  const until = performance.now() + deadlineMs;
  for (;;) {
    try {
      return run();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= until) throw error;
      Atomics.wait(pause, 0, 0, 1);
    }
  }
}

/** Runs in one write transaction; rolls back what throws. */
export function writeTransaction<T>(db: DatabaseSync, run: () => T, deadlineMs: number): T {
  retryBusy(() => {
    db.exec('BEGIN IMMEDIATE');
  }, deadlineMs);
  try {
    const result = run();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}
