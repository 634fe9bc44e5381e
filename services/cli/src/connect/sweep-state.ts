/**
 * Takes away what nobody has used for long, and what killed processes have left: each folder in which a client was ever
 * started is a place. SPEC: CONNECT-SWEEP.
 */
import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { isOwnerAlive } from './process-sign.ts';

const DAY_MS = 24 * 3600 * 1000;
/** No server keeps a session for so long that nobody has asked for. */
const PLACE_MS = 30 * DAY_MS;
/** Logins are worth more: to get one again takes a person. */
const LOGIN_MS = 180 * DAY_MS;
/** What a process that lives still writes is younger. */
const LEFTOVER_MS = DAY_MS;

/** Of `<name>.json`, `<name>.json.held-by-<pid>`, `<name>.json.lock` and `….tmp`; all others are nobody's of ours. */
const OURS =
  /^(?<place>[0-9a-f]{32}\.json)(?:\.held-by-(?<pid>[0-9]+)|(?<leftover>\.[0-9a-z.-]*tmp|\.lock(?:\.takeover)?))?$/;

/** Resolves when it is through. Never rejects: what cannot be removed stays. */
export async function sweepState(folder: string, nowMs: number): Promise<void> {
  await sweep(folder, nowMs, PLACE_MS);
  await sweep(path.join(folder, 'logins'), nowMs, LOGIN_MS);
}

async function sweep(folder: string, nowMs: number, maxAgeMs: number): Promise<void> {
  const found = (await readdir(folder).catch(() => [])).flatMap((name): readonly Found[] => {
    const { place, pid, leftover } = OURS.exec(name)?.groups ?? {};
    return place === undefined ? [] : [{ file: path.join(folder, name), name, place, pid, leftover }];
  });
  const held = new Set<string>();
  for (const { file, place, pid } of found) {
    if (pid === undefined) continue;
    if (await isOwnerAlive(Number(pid), file)) held.add(place);
    else await rm(file, { force: true }).catch(() => undefined);
  }
  for (const { file, name, place, leftover } of found) {
    const limitMs = leftover !== undefined ? LEFTOVER_MS : name === place && !held.has(place) ? maxAgeMs : Infinity;
    const ageMs = nowMs - (await stat(file).catch(() => ({ mtimeMs: nowMs }))).mtimeMs;
    if (ageMs > limitMs) await rm(file, { force: true }).catch(() => undefined);
  }
}

interface Found {
  readonly file: string;
  readonly name: string;
  readonly place: string;
  readonly pid: string | undefined;
  readonly leftover: string | undefined;
}
