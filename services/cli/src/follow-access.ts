/** Tokens, keys and secrets from files that change while a gateway runs. SPEC: CLI-REREAD. */
import { open, stat } from 'node:fs/promises';
import type { AccessChange } from '@throughline/gateway';
import { followFiles } from '@throughline/gateway/follow-files';
import type { Following } from '@throughline/gateway/follow-files';
import type { Clock } from '@throughline/log';
import type { Logger } from '@throughline/telemetry';
import type { AccessFile } from './access-files.ts';
import { StartError } from './faults.ts';
import { fileProblem } from './file-problem.ts';
import { FileTooLargeError, MAX_FILE_BYTES } from './read-text-file.ts';

interface Holding {
  readonly text: string;
  /** Null: what was used at the start. */
  readonly change: AccessChange | null;
}

/** Each on its own: a fault in one keeps no other from being used. */
export function followAccess(
  files: readonly AccessFile[],
  use: (change: AccessChange) => void,
  by: { readonly clock: Clock; readonly logger: Logger },
): readonly Following[] {
  return files.map((file) =>
    followFiles<Holding>(
      {
        first: { text: file.text, change: null },
        read: () => readAccess(file),
        isSame: (one, other) => one.text === other.text,
        use: ({ change }) => {
          if (change !== null) use(change);
        },
        events: { renewed: 'access.renewed', refused: 'access.refused' },
        fields: { option: file.where, file: file.file },
      },
      by,
    ),
  );
}

/** Rejects with every problem of it; none holds what stands in the file. */
async function readAccess({ file, parse }: AccessFile): Promise<Holding> {
  let text: string;
  try {
    text = await readRegular(file);
  } catch (error) {
    throw new StartError(`${fileProblem(error)}; what was read before goes on`, error);
  }
  const { change, problems } = parse(text);
  if (problems.length > 0) throw new StartError(`${problems.join('; ')}; what was read before goes on`);
  return { text, change };
}

/** To open a pipe would wait for whoever writes into it. */
async function readRegular(file: string): Promise<string> {
  const state = await stat(file);
  if (!state.isFile()) throw new StartError('it is no file any more');
  if (state.size > MAX_FILE_BYTES) throw new FileTooLargeError();
  const handle = await open(file);
  try {
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}
