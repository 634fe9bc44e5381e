/** The command lines of the README for a cluster, as the commands take them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { hashToken, makeSecret } from './auth-tokens.ts';
import { loadSettings } from './load-settings.ts';
import { parseArguments } from './parse-arguments.ts';

const README = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
/** Without what the shell takes for itself: where the output goes, and remarks. */
const LINES = README.split('\n')
  .filter((line) => line.startsWith('throughline '))
  .map((line) =>
    line
      .replace(/\s+[>#].*$/, '')
      .split(/\s+/)
      .slice(1),
  );
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'readme-'));
  writeFileSync(path.join(folder, 'throughline.secrets'), `${makeSecret()}\n`);
  writeFileSync(path.join(folder, 'tokens'), `somebody:${hashToken('a token')}\n`);
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

it('[CLI-COMMANDS] each line of the README for a cluster is a command whose options fit together', () => {
  const names = LINES.map((argv) => {
    const given = parseArguments(argv);
    expect(given.faults, argv.join(' ')).toEqual([]);
    const { command } = given;
    const role = command.name === 'run' ? command.role : 'worker';
    if (command.name !== 'secret-new')
      loadSettings({ arguments: given, environment: {}, cwd: folder, demoModule: '/demo.js' }, role);
    return command.name === 'run' ? command.role : command.name;
  });
  expect(names).toEqual(['operate', 'secret-new', 'gateway', 'worker', 'operate']);
});
