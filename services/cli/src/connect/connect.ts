/** `throughline connect <url>` as a process: the place, the transport and the bridge, from their start to an exit code. */
import os from 'node:os';
import process from 'node:process';
import { ResumableTransport } from '@throughline/client';
import type { CheckpointStore, ResumableTransportOptions } from '@throughline/client';
import { FileCheckpointStore, readKeptSession } from '@throughline/client/node';
import type { KeptSession } from '@throughline/client/node';
import { errorText, settlesWithin, systemClock } from '@throughline/log';
import { runBridge } from './bridge.ts';
import type { BridgeEnd } from './bridge.ts';
import type { ConnectProcess } from './connect-process.ts';
import type { ConnectRequest } from './connect-request.ts';
import type { Credentials } from './credentials.ts';
import {
  describeError,
  describeLost,
  describeOrphan,
  describeRestored,
  describeRetry,
  describeUnproven,
} from './describe-trouble.ts';
import { holdPlace } from './hold-place.ts';
import type { HeldPlace } from './hold-place.ts';
import { LineWriter } from './line-writer.ts';
import { logInNow } from './login/log-in-now.ts';
import { chooseCredentials } from './choose-credentials.ts';
import { stateFolder } from './state-folder.ts';
import { sweepState } from './sweep-state.ts';
import { makeTeller } from './teller.ts';
import type { Teller } from './teller.ts';

/** Exit codes. SPEC: CONNECT-EXIT. */
const DONE = 0;
const OUTPUT_LOST = 1;
const WRONG = 2;
const NO_SESSION = 3;
const NO_LOGIN = 4;

/** Clients kill what has not ended two seconds after they closed its stdin. */
const END_MS = 800;
const CLOSE_MS = 2000;
/** To learn whether a session that was left behind is still there. */
const PROBE_MS = 5000;

/** Resolves with the exit code. */
export async function connect(request: ConnectRequest, self: ConnectProcess): Promise<number> {
  const tell = makeTeller(self.err, () => performance.now());
  const stop = new AbortController();
  const unlisten = self.onSignals((signal) => {
    // Whoever asks twice does not want to wait.
    if (stop.signal.aborted) self.exit(signal === 'SIGINT' ? 130 : 143);
    stop.abort();
  });
  const home = { environment: process.env, platform: process.platform, homeFolder: os.homedir() };
  const folder = request.stateFolder ?? stateFolder(home);
  const tools = { request, self, folder, tell, signal: stop.signal };
  let credentials: Credentials | null = null;
  let place: Place | null = null;
  try {
    if (request.login.when === 'now') return LOGIN_CODES[await logInNow(tools)];
    const chosen = await chooseCredentials(tools);
    if (!chosen.ok) {
      tell(chosen.problem);
      return WRONG;
    }
    credentials = chosen.credentials;
    place = await openPlace(request, folder, tell);
    void sweepState(folder, Date.now());
    return await serve(request, self, { tell, credentials, place, signal: stop.signal });
  } finally {
    // A login that nobody waits for any more lets go of its lock.
    stop.abort();
    if (credentials !== null) await settlesWithin(systemClock, credentials.settled(), END_MS);
    await place?.held.release();
    unlisten();
  }
}

const LOGIN_CODES = { done: DONE, wrong: WRONG, unreachable: NO_SESSION, failed: NO_LOGIN } as const;

interface Place {
  readonly store: CheckpointStore;
  readonly key: string;
  readonly held: HeldPlace;
}

/** `null`: the session of this process is not kept, which was told. */
async function openPlace(request: ConnectRequest, folder: string, tell: (text: string) => void): Promise<Place | null> {
  const store = new FileCheckpointStore(folder);
  const key = `${request.url.href}\n${request.place}`;
  try {
    const held = await holdPlace(store.fileOf(key));
    if (held !== null) return { store, key, held };
    tell(
      'another process serves this place now, so this session is one of its own and ends with this process; give each client a --place of its own',
    );
  } catch (error) {
    tell(`the place cannot be kept in ${folder} (${(error as Error).message}); name another folder by --state-folder`);
  }
  return null;
}

interface Serving {
  readonly tell: Teller;
  readonly credentials: Credentials;
  readonly place: Place | null;
  readonly signal: AbortSignal;
}

async function serve(request: ConnectRequest, self: ConnectProcess, serving: Serving): Promise<number> {
  const { tell, credentials, place, signal } = serving;
  let told: Readonly<Record<string, unknown>> | null = null;
  const options: ResumableTransportOptions = {
    headers: () => credentials.headers(),
    onUnauthorized: (answer, sent) => credentials.onUnauthorized(answer, sent),
    policy: request.policy,
    giveUpMs: request.giveUpMs,
    ...(place === null ? {} : { store: place.store, storeKey: place.key }),
    onSessionLost: (lost) => {
      tell(describeLost(lost));
    },
    onSessionRestored: (restored) => {
      for (const line of describeRestored(restored, told)) tell(line);
    },
    onUnproven: (notice) => {
      tell(describeUnproven(notice));
    },
    onOrphanAnswer: (answer) => {
      tell(describeOrphan(answer));
    },
  };
  // Nobody is asked before the client has said a word, and its stdin is read.
  const quiet = { ...options, onUnauthorized: credentials.renewQuietly.bind(credentials) };
  const kept = place === null ? null : await takeKept(request, quiet, place, serving);
  const transport = new ResumableTransport(request.url, options);
  let trouble: Error | null = null;
  transport.onerror = (error) => {
    trouble = error;
    tell(describeError(error), describeRetry(error));
  };
  const end = await runBridge({
    transport,
    input: self.input,
    writer: new LineWriter(self.output),
    startWithinMs: request.startWithinMs,
    lingerMs: request.lingerMs,
    signal,
    tell,
    isWaiting: () => credentials.isWaiting,
    explain: () => credentials.problem,
    trouble: () => trouble,
    onSession(result) {
      told = result;
      trouble = null;
      if (kept === null) return;
      if (kept.sessionId === transport.sessionId) tell('goes on in the session of the process before');
      else {
        tell('the client is another one than before: its session is a new one, and the former is ended');
        void kept.end(signal);
      }
    },
  });
  return await finish(end, request, { tell, transport, place, hasBegun: told !== null, credentials });
}

/** The session that a former process left, if it can be gone on with. */
async function takeKept(
  request: ConnectRequest,
  options: ResumableTransportOptions,
  place: Place,
  { signal, tell }: Serving,
): Promise<KeptSession | null> {
  const soon = AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)]);
  // A store that fails is told by the transport.
  const kept = await readKeptSession(request.url, options).catch(() => null);
  if (kept === null) return null;
  if (request.isFresh) await kept.end(soon);
  else if ((await kept.probe(soon)) !== 'gone') return kept;
  await forget(place, tell);
  return null;
}

/** A place that cannot be removed is no reason to end otherwise than the client has asked for. */
async function forget({ store, key }: Place, tell: (text: string) => void): Promise<void> {
  try {
    await store.remove(key);
  } catch (error) {
    tell(`the place could not be removed: ${errorText(error)}`);
  }
}

interface Finishing {
  readonly tell: (text: string) => void;
  readonly transport: ResumableTransport;
  readonly place: Place | null;
  /** There was a session. */
  readonly hasBegun: boolean;
  readonly credentials: Credentials;
}

async function finish(
  end: BridgeEnd,
  request: ConnectRequest,
  { tell, transport, place, hasBegun, credentials }: Finishing,
): Promise<number> {
  const isGoodbye = end.kind === 'closed' || end.kind === 'output-lost';
  const isOver = hasBegun && (place === null || (isGoodbye && request.onClose === 'end'));
  if (isOver && !(await settlesWithin(systemClock, transport.terminateSession(), END_MS)))
    tell('the server did not take the end of the session in time; it ends there by itself');
  await settlesWithin(systemClock, transport.close(), CLOSE_MS);
  // Also if the server was out of reach: the client has said goodbye, and the next one is not to go on in it.
  if (isOver && place !== null) await forget(place, tell);
  switch (end.kind) {
    case 'closed':
    case 'stopped':
      return DONE;
    case 'output-lost':
      tell('the client does not read any more');
      return OUTPUT_LOST;
    case 'no-session':
      tell(`there is no session: ${end.why}`);
      return credentials.problem === null ? NO_SESSION : NO_LOGIN;
  }
}
