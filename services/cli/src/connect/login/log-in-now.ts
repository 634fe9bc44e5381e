/** `--login now`: a login that later starts use. SPEC: CONNECT-LOGIN-NOW. */
import { failureText } from '@throughline/log';
import { openLoginOf } from '../choose-credentials.ts';
import type { ConnectTools } from '../choose-credentials.ts';
import { LoginError } from './login-error.ts';

const WITHIN_MS = 30_000;
/** What a server of MCP says to a GET outside of a session, after it let the request in. A wrong path, a proxy or a failure says others. */
const WITHOUT_LOGIN: ReadonlySet<number> = new Set([200, 400, 405, 406]);

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
  if (WITHOUT_LOGIN.has(answer.status)) {
    tell(`the server asks for no login (it answered ${answer.status})`);
    return 'done';
  }
  if (answer.status !== 401) {
    tell(`the server does not say whether it wants a login: it answered ${answer.status}; check the URL`);
    return 'unreachable';
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
