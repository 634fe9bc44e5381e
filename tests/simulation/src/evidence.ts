/** What judges of a run ask of it: the models of what its log held, and what its faults explain. Pure. */
import type { EventId } from '@throughline/protocol';
import { FAULTS } from './faults.ts';
import type { FaultName } from './faults.ts';
import { beginsAtStart, readPartition, readStream } from './model.ts';
import type { ModelPartition, ModelSession, ModelStream } from './model.ts';
import type { RunRecords } from './records-of-run.ts';

/** So long may a process that was away at the break, or lags behind it, meet what came in the place of what was lost. */
const LIMBO_MS = 10_000;

export class Evidence {
  readonly records: RunRecords;
  readonly find: (rule: string, what: string) => void;
  /** By epoch and partition: what it held, as it was before each break and at the end. */
  readonly partitions: ReadonlyMap<string, readonly ModelPartition[]>;
  readonly harms: ReadonlySet<string>;
  /** Retention took events that some client may stand before. */
  readonly evictsEvents: boolean;
  readonly #streams = new Map<string, readonly ModelStream[]>();

  constructor(records: RunRecords, find: (rule: string, what: string) => void) {
    this.records = records;
    this.find = find;
    this.partitions = new Map(
      records.epochs.flatMap((epoch) =>
        records.partitions.map((archive) => {
          const histories = [...(archive.formerEvents ?? []), archive.events];
          const models = histories.map((events) => readPartition({ ...archive, events }, epoch));
          return [`${epoch}/${archive.partition}`, models] as const;
        }),
      ),
    );
    this.evictsEvents = records.faults.includes('retention') || records.faults.includes('retention-of-checkpoint');
    this.harms = new Set(records.faults.flatMap((name) => (name in FAULTS ? [FAULTS[name as FaultName].harm] : [])));
  }

  /** Whether the faults of the run explain that a client of this session is told so. */
  explains(code: string, sessionId: string): boolean {
    const { faults, sessions } = this.records;
    const session = sessions.find(({ id }) => id === sessionId);
    const isAppend = this.harms.has('append');
    const isOver = session?.deleted === true || session?.lost != null;
    if (session?.forged === true && isOver) return true;
    switch (code) {
      case 'OWNER_LOST':
        // A repetition may come when what the first one was told is no longer held.
        return this.harms.has('owner') || isAppend || this.isBroken || this.evictsEvents;
      case 'SERVER_FAILED':
        return faults.includes('instance-failure') || isOver;
      case 'SESSION_ENDED':
      case 'session-ended':
        return isOver;
      case 'GAP':
      case 'gap':
        return this.evictsEvents;
      case 'EPOCH_MISMATCH':
      case 'epoch-mismatch':
        return faults.includes('epoch-rotation') || this.isBroken;
      case 'LOG_UNAVAILABLE':
        return isAppend || this.isBroken;
      case 'APPEND_UNKNOWN': {
        // A client that cannot resume hears from a gateway that stops that its call may run.
        const cannotResume = session !== undefined && session.version < '2025-11-25';
        return (
          isAppend ||
          this.isBroken ||
          faults.includes('slow-append') ||
          (cannotResume && faults.includes('gateway-stop'))
        );
      }
      default:
        return false;
    }
  }

  get isBroken(): boolean {
    return this.records.faults.some((name) => name in FAULTS && 'breaks' in FAULTS[name as FaultName]);
  }

  /** Between a break and its proof a reader that lags behind the cut meets what came in the place of what was lost. */
  isLimbo(ms: number): boolean {
    return (this.records.breaks ?? []).some(({ atMs }) => ms >= atMs && ms <= atMs + LIMBO_MS);
  }

  /** `sessions` was made anew, and everybody who knew of the end of this one died before they noticed. SPEC: LIM-SESSIONS. */
  isEndForgotten(session: string): boolean {
    return (this.records.breaks ?? []).some(
      ({ topic, partition, isForgotten }) =>
        topic === 'sessions' && isForgotten === true && `${partition}` === session.split('.')[1],
    );
  }

  /** The stream as each history of the partition has it. */
  streams(session: string, label: string, id: EventId): readonly ModelStream[] {
    const key = `${session} ${label}`;
    const known = this.#streams.get(key);
    if (known !== undefined) return known;
    const streams = (this.partitions.get(`${id.epoch}/${id.partition}`) ?? []).flatMap((history) => {
      const model = history.sessions.get(keyOf(session));
      return model === undefined ? [] : [this.#read(session, model, label, id)];
    });
    // What only moves the cursor does not yet tell where a stream began.
    if (id.seq !== 0 || !this.#isVague(label)) this.#streams.set(key, streams);
    return streams;
  }

  #read(session: string, model: ModelSession, label: string, id: EventId): ModelStream {
    const isStandalone = label.startsWith('s');
    const whole = readStream(session, model, label, isStandalone && beginsAtStart(model, Number(label.slice(1))));
    if (!this.#isVague(label) || whole.messages[Number(id.seq) - 1]?.offset === id.offset) return whole;
    return readStream(session, model, label, false);
  }

  /** Where a standalone stream begins depends on what was still held then; every reader must see it the same even so. */
  #isVague(label: string): boolean {
    return label.startsWith('s') && this.harms.has('history');
  }
}

export function labelOf(id: EventId): string {
  return `${id.stream.kind === 'request' ? 'r' : 's'}${id.stream.at}`;
}

export function keyOf(session: string): string {
  return session.split('.')[4] ?? '';
}
