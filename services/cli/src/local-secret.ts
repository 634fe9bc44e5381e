/**
 * The signing secret of a trial on a broker of this machine: a file beside the other data, made on first start. A real
 * cluster gets it from its configuration instead, since gateways on other machines must have the same.
 */
import { existsSync, linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { makeSecret } from './auth-tokens.ts';
import { parseSecretsFile } from './access-files.ts';
import { readTextFile } from './read-text-file.ts';
import { StartError } from './faults.ts';
import { errorCode, fileProblem } from './file-problem.ts';

/** Of several processes that start at once one makes the file; all read it. Errors: {@link StartError}. */
export function readLocalSecret(file: string): readonly Uint8Array[] {
  try {
    if (!existsSync(file)) makeFile(file);
  } catch (error) {
    if (errorCode(error) !== 'EEXIST')
      throw new StartError(`The file of the secret, ${file}, cannot be made: ${fileProblem(error)}.`, error);
  }
  let text: string;
  try {
    text = readTextFile(file);
  } catch (error) {
    throw new StartError(`The file of the secret, ${file}, cannot be read: ${fileProblem(error)}.`, error);
  }
  const { secrets, problems } = parseSecretsFile(text);
  const [problem] = problems;
  if (problem !== undefined) throw new StartError(`The file of the secret, ${file}: ${problem}.`);
  return secrets;
}

/** Whole or not at all: a link cannot replace a file, and nobody reads half of one. */
function makeFile(file: string): void {
  mkdirSync(path.dirname(file), { recursive: true });
  const own = `${file}.${process.pid}`;
  writeFileSync(own, `${makeSecret()}\n`, { mode: 0o600 });
  try {
    linkSync(own, file);
  } finally {
    rmSync(own, { force: true });
  }
}
