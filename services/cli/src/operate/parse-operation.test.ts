import { describe, expect, it } from 'vitest';
import { parseArguments } from '../parse-arguments.ts';
import { faultsOfArguments } from '../testing/load-line.ts';

const operationOf = (line: string): unknown => {
  const { command, faults } = parseArguments(line.split(' '));
  expect(faults).toEqual([]);
  return command.name === 'operate' ? command.operation : command;
};

describe("the operator's commands", () => {
  it('[CLI-TOPICS] topics is asked to apply, show or diff, for people or for programs', () => {
    expect(operationOf('topics apply --replication 1')).toEqual({ kind: 'topics', action: 'apply', json: false });
    expect(operationOf('topics --json show')).toEqual({ kind: 'topics', action: 'show', json: true });
    expect(operationOf('topics diff --prefix a')).toEqual({ kind: 'topics', action: 'diff', json: false });
    expect(faultsOfArguments('topics aply')).toEqual([expect.stringContaining('Did you mean topics apply?')]);
  });

  it('[CLI-OPERATE] their options are refused elsewhere, and those of the roles with them', () => {
    expect(faultsOfArguments('serve --json')).toEqual([expect.stringMatching(/^--json: is an option of topics apply/)]);
    expect(faultsOfArguments('serve --replication 1')).toEqual([
      "--replication: is an option of the operator's commands, not of serve; leave it out.",
    ]);
    expect(faultsOfArguments('topics show --listen 127.0.0.1:1')).toEqual([
      "--listen: is an option of serve and gateway, not of the operator's commands; leave it out.",
    ]);
    expect(faultsOfArguments('topics show --json=1')).toEqual(['--json: takes no value.']);
    expect(faultsOfArguments('topics show more')).toEqual(['more: is one word too many.']);
  });
});
