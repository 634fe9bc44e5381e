/** One command of an operator, from the configuration to its exit code. */
import { LogError } from '@throughline/log';
import { describeFailure, describeReason } from '../describe-failure.ts';
import type { Advise } from '../describe-failure.ts';
import type { Settings } from '../settings.ts';
import { suggestCommand } from '../suggest-command.ts';
import type { Operation } from './operations.ts';
import type { OperatorProcess } from './operator-process.ts';
import { runDoctor } from './doctor.ts';
import { runEpochRotate, runEpochShow } from './epoch.ts';
import { runInspect } from './inspect.ts';
import { runOwners } from './owners.ts';
import { runTail } from './tail.ts';
import { runTopics } from './topics.ts';

/** Exit code after Ctrl-C. */
export const INTERRUPTED = 130;

/** Resolves with the exit code: 1 if something failed, which is said on stderr; else as the command says. */
export async function runOperation(operation: Operation, settings: Settings, self: OperatorProcess): Promise<number> {
  try {
    const code = await dispatch(operation, settings, self);
    // A failure that a command tells as a finding may be the interruption itself.
    return self.signal.aborted && code !== 0 ? INTERRUPTED : code;
  } catch (error) {
    // Ctrl-C: what fails then is what was under way.
    if (self.signal.aborted) return INTERRUPTED;
    // What the log says is about this command, not about opening it.
    const advise: Advise = (name) => suggestCommand(settings, name);
    self.err(
      `throughline: ${error instanceof LogError ? describeReason(error, advise) : describeFailure(error, advise)}\n`,
    );
    return 1;
  }
}

function dispatch(operation: Operation, settings: Settings, self: OperatorProcess): Promise<number> {
  switch (operation.kind) {
    case 'topics':
      return runTopics(operation.action, operation.json, settings, self);
    case 'doctor':
      return runDoctor(operation.json, settings, self);
    case 'inspect':
      return runInspect(operation.inspected, settings, self);
    case 'tail':
      return runTail(operation.request, settings, self);
    case 'owners':
      return runOwners(operation.json, settings, self);
    case 'epoch-show':
      return runEpochShow(operation.json, settings, self);
    case 'epoch-rotate':
      return runEpochRotate(operation, settings, self);
  }
}
