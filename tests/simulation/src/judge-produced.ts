/** What producers asked to be said: once to each session, and to each session that lives. SPEC: SIM-PRODUCED. */
import { decodeText, STANDALONE } from '@throughline/protocol';
import { keyOf } from './evidence.ts';
import type { Evidence } from './evidence.ts';
import type { ModelSession } from './model.ts';
import { producedText } from './sim-producer.ts';

/**
 * Faults by which a message may rightly be lost, or be said again: it was taken before it was served, or with it whether
 * it was said, or the first copy, so that a successor does not know its name.
 */
const FORGETTING: readonly string[] = ['inbound-retention', 'retention', 'retention-of-checkpoint'];

export class ProducedJudge {
  readonly #evidence: Evidence;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  produced(): void {
    const { records, partitions, find } = this.#evidence;
    const { produced = [], sessions, breaks = [], epochs, faults } = records;
    if (faults.some((name) => FORGETTING.includes(name))) return;
    for (const session of new Set(produced.map((each) => each.session))) {
      const [epoch = '', partition = ''] = session.split('.');
      const names = new Set(produced.filter((each) => each.session === session).map(({ name }) => name));
      // With `inbound` what was said before goes out of memory, until the new epoch ends the session.
      if (breaks.some((broken) => broken.partition === Number(partition))) continue;
      const histories = partitions.get(`${epoch}/${partition}`) ?? [];
      for (const history of histories) {
        const model = history.sessions.get(keyOf(session));
        for (const name of names) {
          const count = timesSaid(model, name);
          if (count > 1) find('SIM-PRODUCED', `${name} was said ${count} times to ${session}`);
        }
      }
      const last = histories.at(-1);
      const record = sessions.find(({ id }) => id === session);
      const isOver =
        epoch !== epochs.at(-1) ||
        record === undefined ||
        record.deleted ||
        record.lost !== null ||
        last?.endedKeys.has(keyOf(session)) === true ||
        (last?.sessions.get(keyOf(session))?.endedAt ?? null) !== null;
      if (isOver) continue;
      for (const name of names)
        if (timesSaid(last?.sessions.get(keyOf(session)), name) === 0)
          find('SIM-PRODUCED', `${name} was appended and never said to ${session}`);
    }
  }
}

function timesSaid(session: ModelSession | undefined, name: string): number {
  const text = producedText(name);
  return (session?.accepted ?? []).filter(
    ({ body, record }) =>
      body.type === 'message' && body.stream === STANDALONE && decodeText(record.value ?? new Uint8Array(0)) === text,
  ).length;
}
