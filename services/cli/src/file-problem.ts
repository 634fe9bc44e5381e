/** Why a file could not be read, in words. */
import { errorText } from '@throughline/log';

export function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

export function fileProblem(error: unknown): string {
  switch (errorCode(error)) {
    case 'ENOENT':
      return 'there is no such file';
    case 'EACCES':
    case 'EPERM':
      return 'the file may not be read by this user';
    case 'EISDIR':
      return 'this is a folder, not a file';
    default:
      return `the file cannot be read (${errorText(error)})`;
  }
}
