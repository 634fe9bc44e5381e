/** `--login now`: a login that later starts use. SPEC: CONNECT-LOGIN-NOW. */
import { failureText } from '@throughline/log';
import { openLoginOf } from '../choose-credentials.ts';
import type { ConnectTools } from '../choose-credentials.ts';
import { LoginError } from './login-error.ts';

const WITHIN_MS = 30_000;

/** `wrong`: a file that is named cannot be used. `unreachable`: somebody did not answer. */
export async function logInNow(tools: ConnectTools): Promise<'done' | 'wrong' | 'unreachable' | 'failed'> {
  const { request, self, tell, signal } = tools;
  const opened = await openLoginOf(tools, true);
  if (!opened.ok) {
    tell(opened.problem);
    return 'wrong';
  }
  let answer: Response;
  try {
    // Without credentials: whoever asks for a login by hand wants a new one, maybe as somebody else.
    answer = await fetch(request.url, {
      headers: { ...request.headers, Accept: 'text/event-stream' },
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(WITHIN_MS)]),
    });
  } catch (error) {
    tell(`the server is out of reach: ${failureText(error)}`);
    return 'unreachable';
  }
  answer.body?.cancel().catch(() => undefined);
  if (answer.status !== 401) {
    tell(`the server asks for no login (it answered ${answer.status})`);
    return 'done';
  }
  if (self.isInteractive)
    tell('if the browser is on another machine, copy the address that it ends at, and enter it here');
  try {
    return (await opened.credentials.logInAnew(answer)) ? 'done' : 'failed';
  } catch (error) {
    if (!(error instanceof LoginError)) throw error;
    tell(error.message);
    return error.code === 'UNAVAILABLE' ? 'unreachable' : 'failed';
  }
}
