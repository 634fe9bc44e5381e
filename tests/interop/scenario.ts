/** The steps that all clients go through, side by side: what is done to the gateways is done to all of them at once. */
import { RawClient, waitUntil, within } from '@throughline/testkit/processes';
import { judgeCall, judgeGone, judgeRefusal } from './judge.ts';
import type { Seen, Step } from './judge.ts';
import { agreedVersion, beyondTheEnd } from './read-wire.ts';
import type { Call, Trial } from './trial.ts';
import type { InteropWorld } from './interop-world.ts';

const LONG = { from: 250, intervalMs: 100 };
const SHORT = { from: 5, intervalMs: 50 };
const ENDLESS = { from: 100_000, intervalMs: 100 };
const CALL_MS = 120_000;
/** Longer than the tries of any client after a refusal take. */
const SETTLE_MS = 20_000;
const FIRST_STEPS = 3;
const PLAIN_TOOL = 'test_simple_text';
const KNOWN_MS = 15_000;
const LATE_MS = 2000;

/** @returns what was seen of each client, in their order. Rejects if the gateways do not come back. */
export async function runStep(step: Step, trials: readonly Trial[], world: InteropWorld): Promise<readonly Seen[]> {
  switch (step) {
    case 'initialize':
      return await each(trials, initialize);
    case 'call':
      return await each(trials, async (trial) => {
        const call = trial.call('countdown', SHORT, CALL_MS);
        return await seenOf(trial, call, SHORT.from, false);
      });
    case 'kill':
      return await overReplacements(trials, world, 'kill');
    case 'drain':
      return await overReplacements(trials, world, 'stop');
    case 'refusal':
      return await each(trials, refuse);
    case '404':
      return await each(trials, (trial) => forget(trial, world));
  }
}

/** What a step throws for one client is what was seen of it, and the others go on. */
async function each(trials: readonly Trial[], run: (trial: Trial) => Promise<Seen>): Promise<readonly Seen[]> {
  return await Promise.all(
    trials.map((trial) =>
      run(trial).catch((error: unknown): Seen => ({ isRight: false, text: `the step broke: ${String(error)}` })),
    ),
  );
}

async function initialize(trial: Trial): Promise<Seen> {
  await trial.connect();
  const { answers } = trial.wire;
  const version = agreedVersion(answers);
  const before = answers.slice(
    0,
    answers.findIndex(({ method }) => method === 'initialize'),
  );
  const probes = before.map(({ httpMethod, method, status }) => `${method ?? httpMethod} got ${status}`);
  const text = [`agreed on ${version ?? 'nothing'}`, ...probes].join('; ');
  return { isRight: version !== undefined, text };
}

async function seenOf(trial: Trial, call: Call, steps: number, mustBeCut: boolean): Promise<Seen> {
  const outcome = await call.outcome;
  const early = call.reported.length;
  const reported = trial.client.reportsProgress ? call.reported : null;
  if (reported !== null && outcome.kind === 'result')
    await waitUntil('late reports', () => reported.length >= steps, LATE_MS).catch(() => undefined);
  return judgeCall({
    steps,
    outcome,
    reported,
    late: call.reported.length - early,
    answers: call.answers(),
    mustBeCut,
  });
}

/** Both gateways in turn, while all clients call: each of them is cut at least once. */
async function overReplacements(
  trials: readonly Trial[],
  world: InteropWorld,
  how: 'kill' | 'stop',
): Promise<readonly Seen[]> {
  const calls = trials.map((trial) => trial.call('countdown', LONG, CALL_MS));
  const all = trials.map((trial, index) => ({ trial, call: calls[index]! }));
  let reached = 0;
  for (const place of [0, 1]) {
    reached += FIRST_STEPS;
    await Promise.all(all.map(({ trial, call }) => trial.reach(call, reached)));
    await world.replaceGateway(place, how);
  }
  return await Promise.all(all.map(({ trial, call }) => seenOf(trial, call, LONG.from, true)));
}

async function refuse(trial: Trial): Promise<Seen> {
  const { wire, client } = trial;
  const call = trial.call('countdown', ENDLESS, CALL_MS);
  await trial.reach(call, FIRST_STEPS);
  wire.rewriteCursor(beyondTheEnd);
  wire.cut(({ method }) => method === 'tools/call');
  const settled = await Promise.race([
    call.outcome,
    new Promise<null>((resolve) => setTimeout(resolve, SETTLE_MS, null).unref()),
  ]);
  wire.rewriteCursor((same) => same);
  const outcome = settled ?? { kind: 'nothing', ms: SETTLE_MS };
  // The Inspector's session is over with its call.
  const answers = call.answers();
  const next = client.reportsProgress ? await trial.call(PLAIN_TOOL, {}, SETTLE_MS).outcome : null;
  return judgeRefusal({ outcome, answers, next });
}

async function forget(trial: Trial, world: InteropWorld): Promise<Seen> {
  const { wire } = trial;
  await trial.connect();
  let from = 0;
  wire.onceBefore('tools/call', async () => {
    from = wire.answers.findLastIndex(({ method }) => method === 'tools/call');
    await endSession(wire.answers[from]?.sessionId ?? '', world.url);
  });
  const outcome = await trial.call(PLAIN_TOOL, {}, SETTLE_MS).outcome;
  const answers = wire.answers.slice(from);
  await trial.connect();
  const again = await trial.call(PLAIN_TOOL, {}, SETTLE_MS).outcome;
  return judgeGone({ outcome, answers, again });
}

/** Ended by somebody else, and known to be so on every gateway: they are asked in turn. */
async function endSession(sessionId: string, url: string): Promise<void> {
  const other = RawClient.of(sessionId);
  await other.end(url);
  const isGone = async (): Promise<boolean> => {
    const answer = await other.request(url, 'ping');
    if (answer.status === 200) await within('the ping', answer.closed);
    return answer.status === 404;
  };
  await waitUntil('404 on every gateway', async () => (await isGone()) && (await isGone()), KNOWN_MS);
}
