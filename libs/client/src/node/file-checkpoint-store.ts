/** The place of a client in files, one a key, replaced as a whole: a process that is killed leaves the old one or the new one. SPEC: CLIENT-FILE. */
import { createHash } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import type { CheckpointStore } from '../checkpoint-store.ts';

/** Whoever reads a place can use the session. */
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

export class FileCheckpointStore implements CheckpointStore {
  readonly #folder: string;
  #saves = 0;

  /** @param folder made when something is saved; only its owner may look into it. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The file of a key: the start of its SHA-256, since a key may hold what no file name can. */
  fileOf(key: string): string {
    return path.join(this.#folder, `${createHash('sha256').update(key).digest('hex').slice(0, 32)}.json`);
  }

  async load(key: string): Promise<string | undefined> {
    try {
      return await readFile(this.fileOf(key), 'utf8');
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async save(key: string, text: string): Promise<void> {
    const file = this.fileOf(key);
    await mkdir(this.#folder, { recursive: true, mode: FOLDER_MODE });
    // Of this process and this save alone: whoever saves the same key at the same time has another.
    const temporary = `${file}.${process.pid}-${this.#saves++}.tmp`;
    try {
      await write(temporary, text);
      await rename(temporary, file);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }

  async remove(key: string): Promise<void> {
    await rm(this.fileOf(key), { force: true });
  }
}

async function write(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', FILE_MODE);
  try {
    await handle.writeFile(text, 'utf8');
    // Before it gets its name: a name without its content would be worse than the old file.
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  // Where the folder is none, nothing is kept; whoever saves is told.
  return code === 'ENOENT' || code === 'ENOTDIR';
}
