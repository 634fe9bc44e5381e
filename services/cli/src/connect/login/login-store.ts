/**
 * Where a login is kept: a file of its own for a server and a client, replaced as a whole, which all processes of this
 * machine share. Where that cannot be, it lives as long as this process. SPEC: CONNECT-LOGIN-KEPT, CONNECT-LOGIN-SHARED.
 */
import { utimes } from 'node:fs/promises';
import { FileCheckpointStore } from '@throughline/client/node';
import { errorText, sleep, systemClock } from '@throughline/log';
import { tryLock } from './file-lock.ts';
import type { FileLock } from './file-lock.ts';
import { formatLogin, parseLogin } from './login-record.ts';
import type { LoginRecord } from './login-record.ts';

const NO_LOCK: FileLock = { release: () => Promise.resolve() };
const POLL_MS = 200;

export class LoginStore {
  readonly #files: FileCheckpointStore;
  readonly #key: string;
  readonly #folder: string;
  readonly #tell: (text: string) => void;
  /** Of this process, where it could not be kept. */
  #unkept: LoginRecord | null = null;

  constructor(folder: string, key: string, tell: (text: string) => void) {
    this.#files = new FileCheckpointStore(folder);
    this.#folder = folder;
    this.#key = key;
    this.#tell = tell;
  }

  get file(): string {
    return this.#files.fileOf(this.#key);
  }

  /** `null`: none, or none that can be read, which is told. Never rejects. */
  async load(): Promise<LoginRecord | null> {
    if (this.#unkept !== null) return this.#unkept;
    try {
      const text = await this.#files.load(this.#key);
      if (text === undefined) return null;
      const record = parseLogin(text);
      if (record === null) this.#tell(`the kept login in ${this.file} cannot be read, so it is not used`);
      return record;
    } catch (error) {
      this.#tell(`the kept login in ${this.file} cannot be read: ${errorText(error)}`);
      return null;
    }
  }

  /** Never rejects. */
  async save(record: LoginRecord): Promise<void> {
    try {
      await this.#files.save(this.#key, formatLogin(record));
      this.#unkept = null;
    } catch (error) {
      this.#unkept = record;
      this.#tell(`the login cannot be kept in ${this.#folder}, so it ends with this process: ${errorText(error)}`);
    }
  }

  /** Says that it is still used, so that it is not swept away. Never rejects. */
  async touch(): Promise<void> {
    const now = new Date();
    await utimes(this.file, now, now).catch(() => undefined);
  }

  /**
   * Waits until no other process renews the login. `null`: one still does when the signal fires, or `isDone` says that
   * nothing is left to do. Where no lock can be, there is none. Never rejects.
   */
  async lock(signal: AbortSignal, isDone: () => Promise<boolean>): Promise<FileLock | null> {
    for (;;) {
      const lock = await tryLock(`${this.file}.lock`).catch(() => NO_LOCK);
      if (lock !== null) return lock;
      if (await isDone()) return null;
      if (!(await sleep(systemClock, POLL_MS, signal))) return null;
    }
  }
}
