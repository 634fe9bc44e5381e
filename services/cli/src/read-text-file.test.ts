import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FileTooLargeError, readTextFile } from './read-text-file.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'throughline-file-'));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe('named files', () => {
  it('[CLI-FILES] are read whole, as UTF-8 across the borders of what is read at once', () => {
    const file = path.join(folder, 'long.txt');
    const text = `a${'ü'.repeat(300_000)}`;
    writeFileSync(file, text);
    expect(readTextFile(file)).toBe(text);
  });

  it('[CLI-FILES] may be pipes', () => {
    const pipe = path.join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const writer = spawn('sh', ['-c', 'printf one; printf two'], { stdio: ['ignore', 'pipe', 'ignore'] });
    const copy = spawn('sh', ['-c', `cat > ${pipe}`], { stdio: [writer.stdout, 'ignore', 'ignore'] });
    expect(readTextFile(pipe)).toBe('onetwo');
    copy.kill();
  });

  it('[CLI-FILES] without an end, or larger than 4 MiB, are refused', () => {
    const file = path.join(folder, 'large.txt');
    writeFileSync(file, Buffer.alloc(4 * 1024 * 1024, 'a'));
    expect(readTextFile(file)).toHaveLength(4 * 1024 * 1024);
    writeFileSync(file, Buffer.alloc(4 * 1024 * 1024 + 1, 'a'));
    for (const endless of [file, '/dev/zero']) expect(() => readTextFile(endless)).toThrow(FileTooLargeError);
  });
});
