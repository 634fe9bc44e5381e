import { describe, expect, it } from 'vitest';
import { parseArguments } from './parse-arguments.ts';
import { faultsOfArguments } from './testing/load-line.ts';

const faultsOf = (...argv: string[]): string[] => faultsOfArguments(argv);

describe('parseArguments', () => {
  it('[CLI-COMMANDS] every command is understood, wherever the options stand', () => {
    expect(parseArguments(['serve', '--listen', '[::1]:0']).command).toEqual({ name: 'run', role: 'serve' });
    expect(parseArguments(['--log=memory:', 'gateway']).command).toEqual({ name: 'run', role: 'gateway' });
    expect(parseArguments(['worker']).command).toEqual({ name: 'run', role: 'worker' });
    expect(parseArguments(['config', 'check']).command).toEqual({ name: 'config-check' });
    expect(parseArguments(['config', '--json-logs', 'print']).command).toEqual({ name: 'config-print' });
    expect(parseArguments(['secret', 'new']).command).toEqual({ name: 'secret-new' });
    expect(parseArguments(['secret', 'hash']).command).toEqual({ name: 'secret-hash' });
  });

  it('[CLI-COMMANDS] help wins over everything else, also over faults', () => {
    expect(parseArguments(['serve', '--no-such', '--help'])).toMatchObject({ command: { name: 'help' }, faults: [] });
    expect(parseArguments(['-v'])).toMatchObject({ command: { name: 'version' }, faults: [] });
    expect(parseArguments(['--version', '-h']).command).toEqual({ name: 'help', of: null });
  });

  it('[CLI-HELP] help is about the command that is named, before or behind it', () => {
    const about = (line: string): unknown => parseArguments(line.split(' ')).command;
    for (const line of ['help inspect', 'inspect --help', 'inspect no-id -h --no-such', 'help inspect --help'])
      expect(about(line), line).toEqual({ name: 'help', of: 'inspect' });
    expect(about('topics --help')).toEqual({ name: 'help', of: 'topics' });
    expect(about('help topics diff')).toEqual({ name: 'help', of: 'topics diff' });
    expect(about('serve --stdio x --help')).toEqual({ name: 'help', of: 'serve' });
    expect(about('help')).toEqual({ name: 'help', of: null });
    expect(faultsOf('help', 'inspekt')).toEqual([expect.stringContaining('Did you mean inspect?')]);
    expect(faultsOf('help', 'topics', 'aply')).toEqual([expect.stringContaining('Did you mean topics apply?')]);
  });

  it('[CLI-COMMANDS] no command, an unknown one and half of one are faults that name the commands', () => {
    expect(faultsOf()).toEqual([expect.stringContaining('none is given; it is one of: serve, gateway, worker')]);
    expect(faultsOf('sevre')).toEqual([expect.stringContaining('Did you mean serve?')]);
    expect(faultsOf('config')).toEqual([expect.stringContaining('config check')]);
    expect(faultsOf('constructor')).toHaveLength(1);
  });

  it('[CLI-ARGS] a value follows its option or an equals sign, and may begin with one dash', () => {
    const { options, configFile, faults } = parseArguments([
      'serve',
      '--stdio',
      'npx -y thing',
      '--log=sqlite:a=b.db',
      '--config',
      'x.yaml',
      '--json-logs',
      '--no-allow-anonymous',
    ]);
    expect(faults).toEqual([]);
    expect(Object.fromEntries(options)).toEqual({
      stdio: 'npx -y thing',
      log: 'sqlite:a=b.db',
      'json-logs': 'true',
      'allow-anonymous': 'false',
    });
    expect(configFile).toBe('x.yaml');
  });

  it('[CLI-ARGS] a list may be given several times, anything else only once', () => {
    const { options } = parseArguments(['serve', '--allowed-hosts', 'a', '--allowed-hosts=b,c']);
    expect(options.get('allowed-hosts')).toBe('a,b,c');
    expect(faultsOf('serve', '--listen=a:1', '--listen=a:2')).toEqual(['--listen: is given twice.']);
    expect(faultsOf('serve', '--config=a', '--config=b')).toEqual(['--config: is given twice.']);
  });

  it('[CLI-ARGS] a missing value is a fault and does not swallow the next option', () => {
    const { options, faults } = parseArguments(['serve', '--stdio', '--log', 'memory:', '--listen']);
    expect(options.get('log')).toBe('memory:');
    expect(faults.map(({ where }) => where)).toEqual(['--stdio', '--listen']);
  });

  it('[CLI-SUGGEST] an unknown option is refused with the nearest name, and its value is no further fault', () => {
    expect(faultsOf('serve', '--lisen', '127.0.0.1:1')).toEqual(['--lisen: no such option. Did you mean --listen?']);
    expect(faultsOf('serve', '--zzzzzzzzzzz')).toEqual(['--zzzzzzzzzzz: no such option.']);
  });

  it('[CLI-ARGS] a command line that lost its quotes is told so', () => {
    const faults = faultsOf('serve', '--stdio', 'npx', '-y', 'thing');
    expect(faults).toHaveLength(2);
    for (const fault of faults) expect(fault).toContain('put the whole command in quotes');
  });

  it('[CLI-ARGS] an option of another role is refused', () => {
    expect(faultsOf('worker', '--listen', 'a:1')).toEqual([
      '--listen: is an option of serve and gateway, not of worker; leave it out.',
    ]);
    expect(faultsOf('gateway', '--stdio', 'x')).toHaveLength(1);
    expect(faultsOf('config', 'check', '--listen', 'a:1', '--stdio', 'x')).toEqual([]);
  });

  it('[CLI-REDACT] secrets are refused on the command line', () => {
    expect(faultsOf('serve', '--secrets', 'abc')).toEqual([
      expect.stringContaining('use the environment, the file or'),
    ]);
  });
});
