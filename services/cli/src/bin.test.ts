import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const BIN = fileURLToPath(new URL('../bin', import.meta.url));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'throughline-bin-'));
  cpSync(BIN, path.join(folder, 'bin'), { recursive: true });
  mkdirSync(path.join(folder, 'dist'));
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(path.join(folder, 'dist/main.js'), "process.stdout.write('started\\n'); export {};");
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Runs the bin as if Node had this version. */
function run(version: string): { code: number; stdout: string; stderr: string } {
  const pretend = `Object.defineProperty(process.versions, 'node', { value: '${version}' });`;
  const args = [
    '--import',
    `data:text/javascript,${encodeURIComponent(pretend)}`,
    path.join(folder, 'bin/throughline.js'),
  ];
  try {
    const stdout = execFileSync(process.execPath, args, { encoding: 'utf8', stdio: 'pipe' });
    return { code: 0, stdout, stderr: '' };
  } catch (error) {
    const { status, stdout, stderr } = error as { status: number; stdout: string; stderr: string };
    return { code: status, stdout, stderr };
  }
}

describe('bin/throughline.js', () => {
  it('[CLI-NODE] Node 24 and later start the program', () => {
    expect(run('24.0.0')).toEqual({ code: 0, stdout: 'started\n', stderr: '' });
    expect(run('101.2.3').stdout).toBe('started\n');
  });

  it('[CLI-NODE] an older Node is refused with the fix and exit code 2, before anything is loaded', () => {
    for (const version of ['23.11.1', '20.20.2', '8.0.0', '0.12.18']) {
      const { code, stdout, stderr } = run(version);
      expect(code).toBe(2);
      expect(stdout).toBe('');
      expect(stderr).toContain(`Node ${version} is too old: Node 24 or later is needed`);
      expect(stderr).toContain('nvm install 24');
    }
  });

  it('[CLI-NODE] the file is understood by the Nodes that it refuses: it is ECMAScript 5', () => {
    const source = readFileSync(path.join(BIN, 'throughline.js'), 'utf8').replace(/^#!.*\n/, '');
    const { outputText } = ts.transpileModule(source, {
      compilerOptions: {
        target: ts.ScriptTarget.ES5,
        allowJs: true,
        module: ts.ModuleKind.CommonJS,
        ignoreDeprecations: '6.0',
      },
      fileName: 'throughline.js',
    });
    const tokens = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|["'\s;]/g, '').replace('usestrict', '');
    expect(tokens(outputText)).toBe(tokens(source));
    expect(source).not.toMatch(/=>|\b(?:let|const|import|async)\b|`/);
  });
});
