/** The pages of the story: how many have come in, and which process indexed which. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const RELEASED = 'released.txt';
export const INDEXED = 'indexed.txt';

function read(folder: string, name: string): string {
  try {
    return readFileSync(path.join(folder, name), 'utf8');
  } catch {
    return '';
  }
}

/** Lets the tool have the pages up to this one. */
export function releasePages(folder: string, count: number): void {
  writeFileSync(path.join(folder, RELEASED), String(count));
}

export function releasedPages(folder: string): number {
  return Number(read(folder, RELEASED));
}

/** The pages that are done, in order, with the process that did each. */
export function indexedPages(folder: string): readonly { readonly page: number; readonly pid: number }[] {
  return read(folder, INDEXED)
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [page, pid] = line.split(' ').map(Number);
      return { page: page ?? 0, pid: pid ?? 0 };
    });
}
