/**
 * A place serves one process at a time: two that go on in one session would take its streams from each other. Who holds it
 * says so by a file with its process id in the name, so that nobody ever removes the sign of somebody who lives. Two that
 * come in the same moment may both go without. SPEC: CONNECT-ALONE.
 */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { isOwnerAlive } from './process-sign.ts';

export interface HeldPlace {
  /** Never rejects. */
  release(): Promise<void>;
}

/** `null`: another process that lives holds it. Rejects with what the system says of the folder. */
export async function holdPlace(placeFile: string): Promise<HeldPlace | null> {
  const folder = path.dirname(placeFile);
  const prefix = `${path.basename(placeFile)}.held-by-`;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const own = path.join(folder, `${prefix}${process.pid}`);
  await writeFile(own, '', { mode: 0o600 });
  // A sign that stays is that of a process that has ended: it holds nothing.
  const release = (): Promise<void> => rm(own, { force: true }).catch(() => undefined);
  for (const name of await readdir(folder)) {
    if (!name.startsWith(prefix)) continue;
    const pid = Number(name.slice(prefix.length));
    if (pid === process.pid) continue;
    const file = path.join(folder, name);
    if (await isOwnerAlive(pid, file)) {
      await release();
      return null;
    }
    await rm(file, { force: true });
  }
  return { release };
}
