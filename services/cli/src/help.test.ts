import { describe, expect, it } from 'vitest';
import { COMMAND_NAMES, COMMANDS } from './command-table.ts';
import { renderConfigPage } from './config-page.ts';
import { renderHelp } from './help.ts';
import { environmentName, OPTION_NAMES, optionRow } from './option-table.ts';
import { parseArguments } from './parse-arguments.ts';

describe('renderHelp', () => {
  it('[CLI-REFERENCE] help of a role names every option, variable, place in the file and default that it takes', () => {
    for (const role of ['serve', 'gateway', 'worker'] as const) {
      const help = renderHelp('1.2.3', role);
      const flat = help.replace(/\s+/g, ' ');
      for (const name of OPTION_NAMES) {
        const row = optionRow(name);
        if (row.roles?.includes(role) === false) {
          expect(help, role).not.toContain(`\n  --${name} `);
          continue;
        }
        if (row.isFlag !== false) expect(help, role).toContain(`\n  --${name}`);
        expect(help, role).toContain(environmentName(name));
        expect(flat, role).toContain(row.help);
        if (row.yaml !== null) expect(help, role).toContain(row.yaml);
        if (row.default !== null && row.kind !== 'switch') expect(flat, role).toContain(`Default: ${row.default}.`);
      }
    }
  });

  it('[CLI-REFERENCE] every option is in the help of a command', () => {
    const all = COMMAND_NAMES.map((name) => renderHelp('1.2.3', name)).join('');
    for (const name of OPTION_NAMES) expect(all).toMatch(new RegExp(`^ {6}${environmentName(name)}( ·|$)`, 'm'));
  });

  it('[CLI-REFERENCE] the general help names every command, and no option of one', () => {
    const help = renderHelp('1.2.3');
    for (const command of COMMAND_NAMES)
      expect(help).toMatch(new RegExp(`^  ${command}( <id>| <url>| \\[command\\])? {2,}\\S`, 'm'));
    expect(help).toContain('throughline 1.2.3');
    expect(
      help.match(/--\w[\w-]*/g)?.filter((flag) => !/^--(stdio|module|listen|config|help|version|payload)$/.test(flag)),
    ).toEqual(['--auth-tokens-file']);
    expect(help.split('\n').length).toBeLessThan(45);
  });

  it('[CLI-HELP] the help of a command says how it is used, what concerns it and nothing else, an example and the exit codes', () => {
    const inspect = renderHelp('1.2.3', 'inspect');
    expect(inspect).toMatch(/^Usage: throughline inspect <id> \[options\]\n/);
    expect(inspect).toMatch(/\n {2}--session <id>\n[^]*\n {2}--payload\n/);
    expect(inspect).toMatch(/\nExamples\n {2}throughline inspect /);
    expect(inspect).toMatch(/\nExit codes\n {2}0 {4}\S[^]*\n {2}2 {4}what was given is no id/);
    for (const flag of ['--log ', '--prefix ', '--kafka-sasl ', '--secrets-file '])
      expect(inspect).toContain(`\n  ${flag}`);
    for (const flag of ['--topic', '--count', '--replication', '--listen', '--stdio', '--admin'])
      expect(inspect).not.toContain(`\n  ${flag}`);
    expect(renderHelp('1.2.3', 'topics apply')).toContain('\n  --replication <number>\n');
    expect(renderHelp('1.2.3', 'secret new')).not.toContain('--config');
  });

  it('[CLI-HELP] each example of a command is a command line without faults', () => {
    for (const name of COMMAND_NAMES)
      for (const example of COMMANDS[name].examples) {
        const [, line = ''] = /throughline (.*?)(?: > .*)?$/.exec(example) ?? [];
        const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');
        const ids: Record<string, string> = {
          $EVENT_ID: 'abcdefghij.0.1.s2.1.AAAAAAAAAAAAAAAAAAAAAA',
          $SESSION_ID: 'abcdefghij.0.0.1.AAAAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA',
        };
        const { command, asked, faults } = parseArguments(words.map((word) => ids[word] ?? word));
        expect({ example, asked, faults }).toEqual({ example, asked: name, faults: [] });
        expect(command.name).not.toBe('faulty');
      }
  });

  it('[CLI-HELP] the first word of several commands gets them all', () => {
    expect(renderHelp('1.2.3', 'topics')).toMatch(
      /^Usage: throughline topics apply \[options\]\n[^]*\n {2}topics diff {3}\S/,
    );
  });

  it('[CLI-REFERENCE] no line of help is wider than 120 characters', () => {
    for (const of of [null, ...COMMAND_NAMES])
      for (const line of renderHelp('1.2.3', of).split('\n')) expect(line.length, line).toBeLessThanOrEqual(120);
  });

  it('[CLI-REFERENCE] the page names every option in a row of its own', () => {
    const page = renderConfigPage();
    for (const name of OPTION_NAMES) {
      const rows = page.split('\n').filter((line) => line.includes(`| \`${environmentName(name)}\` |`));
      expect(rows, name).toHaveLength(1);
    }
  });
});
