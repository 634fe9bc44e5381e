import type { Clock, Log } from '@throughline/log';
import { LogError, systemClock, systemRandom } from '@throughline/log';
import { createMemoryLog } from '@throughline/log/memory';
import { noMetrics, silentLogger } from '@throughline/telemetry';
import { HostError } from '@throughline/worker/host';
import type { McpHost } from '@throughline/worker/host';
import { describe, expect, it } from 'vitest';
import { describeFailure } from './describe-failure.ts';
import { StartError } from './faults.ts';
import { loadSettings } from './load-settings.ts';
import type { Role } from './option-table.ts';
import { parseArguments } from './parse-arguments.ts';
import { runRole } from './run-role.ts';
import type { Settings } from './settings.ts';
import { startRole } from './start-role.ts';
import type { Parts } from './start-role.ts';

const NEVER = new AbortController().signal;
const telemetry = { logger: silentLogger, metrics: noMetrics, renderMetrics: () => Promise.resolve('') };

function settingsOf(line: string, environment: Record<string, string> = {}): { role: Role; settings: Settings } {
  const given = parseArguments(line.split(' '));
  const role = given.command.name === 'run' ? given.command.role : 'serve';
  return { role, settings: loadSettings({ arguments: given, environment, cwd: '/', demoModule: '/demo.js' }, role) };
}

/** Parts that write down what happens to them; the step named `failing` rejects. */
function fakeParts(
  failing?: string,
  error: Error = new Error('failed on purpose'),
): { parts: Parts; events: string[] } {
  const events: string[] = [];
  const step = (name: string): void => {
    events.push(name);
    if (name === failing) throw error;
  };
  const stop = (name: string) => (options?: { drain?: boolean }) => {
    events.push(`stop ${name}${options?.drain === true ? ' with drain' : ''}`);
    return Promise.resolve();
  };
  const parts: Parts = {
    clock: systemClock,
    random: systemRandom,
    openLog: async () => {
      step('log');
      const log: Log = createMemoryLog({ clock: systemClock, partitions: 1, retentionMs: 60_000 });
      return { ...log, close: stop('log') };
    },
    createHost: (name) => {
      step(`host ${name}`);
      const host: McpHost = {
        kind: name,
        open: () => Promise.reject(new Error('unused')),
        close: stop(`host ${name}`),
      };
      return host;
    },
    probe: async (host) => {
      step(`probe ${host.kind}`);
      return new Map();
    },
    startGateway: async () => {
      step('gateway');
      return {
        url: 'http://127.0.0.1:4711/mcp',
        adminUrl: null,
        changeAccess: (change) => void events.push(`access ${JSON.stringify(change)}`),
        readFilesNow: () => void events.push('read TLS files'),
        stop: stop('gateway'),
      };
    },
    startAdmin: async () => {
      step('admin');
      return { url: 'http://127.0.0.1:4712', close: stop('admin') };
    },
    startWorker: async () => {
      step('worker');
      return { stop: stop('worker'), isReady: () => true, unreleased: () => [] };
    },
  };
  return { parts, events };
}

describe('startRole', () => {
  it('[CLI-WORKER-ADMIN] a worker with an admin address serves it before it is ready, and stops it last', async () => {
    const { role, settings } = settingsOf('worker --log sqlite:x --admin 127.0.0.1:0');
    const { parts, events } = fakeParts();
    let isReady = (): boolean => true;
    const seen: Parts = {
      ...parts,
      startAdmin(address, options) {
        isReady = () => options.isReady();
        expect(isReady()).toBe(false);
        return parts.startAdmin(address, options);
      },
    };
    const running = await startRole(role, settings, seen, telemetry, NEVER);
    expect(isReady()).toBe(true);
    expect(events).toEqual(['log', 'host default', 'probe default', 'admin', 'worker']);
    await running.stop({ drain: true });
    expect(events.slice(5, 7)).toEqual(['stop worker with drain', 'stop admin']);
  });

  it('[CLI-START] serve probes its servers before anything listens, and stops in the other order', async () => {
    const { role, settings } = settingsOf('serve');
    const { parts, events } = fakeParts();
    const running = await startRole(role, settings, parts, telemetry, NEVER);
    expect(events).toEqual(['log', 'host default', 'probe default', 'gateway', 'worker']);
    await running.stop({ drain: true });
    expect(events.slice(5)).toEqual([
      'stop worker with drain',
      'stop gateway with drain',
      'stop host default',
      'stop log',
    ]);
  });

  it('[CLI-START] a gateway starts no server and a worker starts no gateway', async () => {
    const gateway = fakeParts();
    await startRole('gateway', settingsOf('gateway').settings, gateway.parts, telemetry, NEVER);
    expect(gateway.events).toEqual(['log', 'gateway']);
    const worker = fakeParts();
    await startRole('worker', settingsOf('worker').settings, worker.parts, telemetry, NEVER);
    expect(worker.events).toEqual(['log', 'host default', 'probe default', 'worker']);
  });

  it('[CLI-START] [E2E-OWNER-LOST] the worker is told what the servers said of their tools', async () => {
    const { role, settings } = settingsOf('worker');
    const { parts } = fakeParts();
    const tools = new Map([['lookup', { readOnly: true, idempotent: false }]]);
    const told: unknown[] = [];
    const watching: Parts = {
      ...parts,
      probe: async () => tools,
      startWorker: async (config, deps) => {
        told.push(deps.tools.get('default'));
        return await parts.startWorker(config, deps);
      },
    };
    await startRole(role, settings, watching, telemetry, NEVER);
    expect(told).toEqual([tools]);
  });

  it('[CLI-KAFKA-RETENTION] a log that holds less than was asked for is warned about, and decides how often idle streams are refreshed', async () => {
    const { role, settings } = settingsOf('gateway --retention 24h');
    const { parts } = fakeParts();
    const warned: unknown[] = [];
    const refreshed: number[] = [];
    const logger = { ...silentLogger, warn: (message: string, fields?: unknown) => warned.push([message, fields]) };
    const watching: Parts = {
      ...parts,
      startGateway: async (config, deps) => {
        refreshed.push(config.refreshMs);
        return await parts.startGateway(config, deps);
      },
    };
    await startRole(role, settings, watching, { ...telemetry, logger: { ...logger, child: () => logger } }, NEVER);
    expect(warned).toEqual([['log.retention-short', { promisedMs: 86_400_000, heldMs: 60_000 }]]);
    expect(refreshed).toEqual([15_000]);
  });

  it('[CLI-START-CLEAN] whichever step fails, what was started is stopped and the fault is the one reported', async () => {
    const steps = ['log', 'host default', 'probe default', 'gateway', 'worker'];
    for (const [index, failing] of steps.entries()) {
      const { parts, events } = fakeParts(failing);
      const { role, settings } = settingsOf('serve');
      await expect(startRole(role, settings, parts, telemetry, NEVER)).rejects.toThrow('failed on purpose');
      expect(events.slice(0, index + 1)).toEqual(steps.slice(0, index + 1));
      const started = steps.slice(0, index).filter((step) => step !== 'probe default');
      expect(events.slice(index + 1)).toEqual(started.reverse().map((step) => `stop ${step}`));
    }
  });

  it('[CLI-FAILURES] the server that does not start is named', async () => {
    const { settings } = settingsOf('serve');
    const one = settings.worker.servers['default'];
    if (one === undefined) throw new Error('no server');
    const two: Settings = { ...settings, worker: { ...settings.worker, servers: { left: one, right: one } } };
    const { parts } = fakeParts('probe right', new HostError('HOST_GONE', 'It ended.'));
    await expect(startRole('serve', two, parts, telemetry, NEVER)).rejects.toThrow('server right: It ended.');
  });

  it('[CLI-SECRET] configured secrets are used in place of the one of the log', async () => {
    const secret = Buffer.alloc(32, 3).toString('base64url');
    const used: Uint8Array[][] = [];
    const { parts } = fakeParts();
    const watching: Parts = {
      ...parts,
      startGateway: (config, deps) => {
        used.push(config.secrets);
        return parts.startGateway(config, deps);
      },
    };
    await startRole('serve', settingsOf('serve', { THROUGHLINE_SECRETS: secret }).settings, watching, telemetry, NEVER);
    await startRole('serve', settingsOf('serve').settings, watching, telemetry, NEVER);
    expect(used[0]).toEqual([new Uint8Array(32).fill(3)]);
    expect(used[1]?.[0]).toHaveLength(32);
    expect(used[1]).not.toEqual(used[0]);
  });

  it('[CLI-READY] the ready line names the endpoint, the server and the log', async () => {
    const ready = async (line: string): Promise<string> => {
      const { role, settings } = settingsOf(line);
      return (await startRole(role, settings, fakeParts().parts, telemetry, NEVER)).ready;
    };
    expect(await ready('serve --log memory:')).toBe(
      'Throughline is ready: http://127.0.0.1:4711/mcp (the demo server; log memory:)',
    );
    expect(await ready('serve --upstream http://u:p@x.example/mcp --log sqlite:a.db')).toBe(
      'Throughline is ready: http://127.0.0.1:4711/mcp (server: http://redacted:redacted@x.example/mcp; log sqlite:a.db)',
    );
    expect(await ready('gateway')).toBe(
      'Throughline gateway is ready: http://127.0.0.1:4711/mcp (log sqlite:.throughline/log.db)',
    );
    expect(await ready('worker --stdio run')).toBe(
      'Throughline worker is ready: server: run (log sqlite:.throughline/log.db)',
    );
  });
});

interface FakeProcess {
  readonly out: string[];
  readonly err: string[];
  readonly exits: number[];
  signal(name: NodeJS.Signals): void;
  hangUp(): void;
  /** Resolves with the first line on stdout. */
  readonly ready: Promise<string>;
  readonly code: Promise<number>;
}

function start(line: string, parts: Parts, isInteractive = false): FakeProcess {
  const { role, settings } = settingsOf(line);
  const out: string[] = [];
  const err: string[] = [];
  const exits: number[] = [];
  const listeners = new Set<(signal: NodeJS.Signals) => void>();
  const hangups = new Set<() => void>();
  let code: Promise<number> = Promise.resolve(-1);
  const ready = new Promise<string>((resolve) => {
    code = runRole(role, settings, parts, {
      out: (text) => {
        out.push(text);
        resolve(text);
      },
      err: (text) => void err.push(text),
      onSignals(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      onHangups(listener) {
        hangups.add(listener);
        return () => void hangups.delete(listener);
      },
      isInteractive,
      exit: (status) => void exits.push(status),
    });
  });
  return {
    out,
    err,
    exits,
    ready,
    code,
    signal(name) {
      for (const listener of listeners) listener(name);
    },
    hangUp() {
      for (const listener of hangups) listener();
    },
  };
}

/** A clock whose timers the test fires. */
function heldClock(): { readonly clock: Clock; readonly timers: { readonly ms: number; fire(): void }[] } {
  const timers: { ms: number; fire(): void }[] = [];
  const setTimer = (ms: number, run: () => void): (() => void) => {
    timers.push({ ms, fire: run });
    return () => undefined;
  };
  return { timers, clock: { ...systemClock, setTimer } };
}

describe('runRole', () => {
  it('[CLI-STOP] the first signal drains and ends with 0', async () => {
    const { parts, events } = fakeParts();
    const run = start('serve', parts);
    await run.ready;
    run.signal('SIGTERM');
    expect(await run.code).toBe(0);
    expect(events).toContain('stop worker with drain');
    expect(run.exits).toEqual([]);
  });

  it('[CLI-HANGUP] a hangup has the files read again and ends nothing; where there is a terminal, it stops as a signal does', async () => {
    const { parts, events } = fakeParts();
    const service = start('serve', parts);
    service.hangUp();
    await service.ready;
    expect(events).not.toContain('read TLS files');
    service.hangUp();
    expect(events).toContain('read TLS files');
    expect(events).not.toContain('stop worker with drain');
    service.signal('SIGTERM');
    expect(await service.code).toBe(0);

    const other = fakeParts();
    const inTerminal = start('serve', other.parts, true);
    await inTerminal.ready;
    inTerminal.hangUp();
    expect(await inTerminal.code).toBe(0);
    expect(other.events).toContain('stop worker with drain');
    expect(other.events).not.toContain('read TLS files');
  });

  it('[CLI-STOP] a signal that comes again at once is the same one; a later one ends the process at once', async () => {
    let now = 1000;
    const { parts } = fakeParts();
    const stuck: Parts = {
      ...parts,
      clock: { ...systemClock, monoMs: () => now },
      startWorker: () =>
        Promise.resolve({ stop: () => new Promise<void>(() => undefined), isReady: () => true, unreleased: () => [] }),
    };
    const run = start('serve', stuck);
    await run.ready;
    run.signal('SIGINT');
    run.signal('SIGINT');
    now += 499;
    run.signal('SIGINT');
    expect(run.exits).toEqual([]);
    now += 1;
    run.signal('SIGINT');
    expect(run.exits).toEqual([130]);
  });

  it('[CLI-STOP] a stop that does not come to an end is given up after its bound, with exit code 1', async () => {
    const { clock, timers } = heldClock();
    const { parts } = fakeParts();
    const stuck: Parts = {
      ...parts,
      clock,
      startWorker: () =>
        Promise.resolve({ stop: () => new Promise<void>(() => undefined), isReady: () => true, unreleased: () => [] }),
    };
    const run = start('serve --drain 3s', stuck);
    await run.ready;
    run.signal('SIGTERM');
    await expect.poll(() => timers.at(-1)?.ms).toBe(3000 + 3000 + 15_000);
    timers.at(-1)?.fire();
    expect(await run.code).toBe(1);
  });

  it('[CLI-UNRELEASED] a worker that could not release its partitions ends with exit code 1 and one line that names them and when others take over', async () => {
    const { parts, events } = fakeParts();
    const full: Parts = {
      ...parts,
      startWorker: () =>
        Promise.resolve({ stop: () => Promise.resolve(), isReady: () => true, unreleased: () => [0, 3] }),
    };
    const run = start('worker --log sqlite:x --dead-after 8s', full);
    await run.ready;
    run.signal('SIGTERM');
    expect(await run.code).toBe(1);
    const lines = run.err
      .join('')
      .split('\n')
      .filter((line) => line.includes('stop.failed'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(
      'the log did not take the release of partitions 0, 3: other workers take over their sessions when nothing was heard of this one for 8s (--dead-after)',
    );
    // The rest is stopped all the same.
    expect(events.slice(-2)).toEqual(['stop host default', 'stop log']);
  });

  it('[CLI-STOP] a start that does not come to an end is given up after the same bound, once a signal has come', async () => {
    const { clock, timers } = heldClock();
    const { parts } = fakeParts();
    const stuck: Parts = {
      ...parts,
      clock,
      openLog: () => new Promise(() => undefined),
    };
    const run = start('serve --drain 3s', stuck);
    expect(timers).toEqual([]);
    run.signal('SIGTERM');
    await expect.poll(() => timers.map(({ ms }) => ms)).toEqual([3000 + 3000 + 15_000]);
    timers[0]?.fire();
    expect(await run.code).toBe(1);
    expect(run.err.join('')).toMatch(/stop\.late/);
  });

  it('[CLI-STOP] a signal does not wait for a server that is slow to start', async () => {
    const { parts, events } = fakeParts();
    const slow: Parts = {
      ...parts,
      probe: (_host, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new HostError('HOST_TIMEOUT', 'aborted')));
        }),
    };
    const run = start('serve', slow);
    await expect.poll(() => events).toContain('host default');
    run.signal('SIGTERM');
    expect(await run.code).toBe(0);
    expect(run.out).toEqual([]);
    expect(events.at(-1)).toBe('stop log');
  });

  it('[CLI-STOP] a signal while it starts stops it as soon as it is up, without a ready line', async () => {
    const { parts, events } = fakeParts();
    const run = start('serve', parts);
    run.signal('SIGTERM');
    expect(await run.code).toBe(0);
    expect(run.out).toEqual([]);
    expect(events.at(-1)).toBe('stop log');
  });

  it('[CLI-FAILURES] what does not start is said in one paragraph, with exit code 1 and nothing on stdout', async () => {
    const { parts } = fakeParts(
      'probe default',
      new HostError('HOST_CONFIG', 'The command "x" was not found. Install it.'),
    );
    const run = start('serve', parts);
    expect(await run.code).toBe(1);
    expect(run.out).toEqual([]);
    expect(run.err.at(-1)).toBe('throughline: server default: The command "x" was not found. Install it.\n');
  });

  it('[CLI-EXPOSED] an open address is warned about at each start', async () => {
    const run = start('serve --listen 0.0.0.0:1 --allow-anonymous', fakeParts().parts);
    await run.ready;
    run.signal('SIGTERM');
    await run.code;
    expect(run.err.join('')).toMatch(/WARN .*--allow-anonymous/);
  });
});

describe('describeFailure', () => {
  const advise = (name: string): string => `throughline ${name} --log kafka://b:9092 --prefix p`;

  it('[CLI-FAILURES] each expected fault names its way out and shows no stack', () => {
    const inUse = Object.assign(new Error('127.0.0.1:8080 is in use; use --listen'), { code: 'ADDRESS_IN_USE' });
    const faults: [Error, RegExp][] = [
      [inUse, /^127\.0\.0\.1:8080 is in use; use --listen\.$/],
      [new LogError('LOG_INCOMPATIBLE', 'written by version 9'), /the log cannot be used: written by version 9/],
      [
        new LogError('LOG_INCOMPATIBLE', 'the cluster has no topic p.meta', { cure: 'apply-topics' }),
        /no topic p\.meta; run `throughline topics apply --log kafka:\/\/b:9092 --prefix p`$/,
      ],
      [new LogError('NOT_AUTHENTICATED', 'check the password'), /^the log cannot be used: check the password$/],
      [new LogError('NOT_AUTHORIZED', 'add this'), /^the log cannot be used: add this$/],
      [new LogError('APPEND_REFUSED', 'add this', { reason: 'not-authorized' }), /^the log cannot be used: add this$/],
      [new LogError('LOG_UNAVAILABLE', 'no access'), /^the log cannot be opened: no access$/],
      [new LogError('APPEND_REFUSED', 'full', { reason: 'disk-full' }), /\(disk-full\).*Free disk space/],
      [new StartError('Do this.', new Error('because')), /^Do this\. \(because\)$/],
      [new HostError('HOST_TIMEOUT', 'It did not answer.'), /^It did not answer\.$/],
    ];
    for (const [fault, expected] of faults) {
      const text = describeFailure(fault, advise);
      expect(text).toMatch(expected);
      expect(text).not.toContain('    at ');
    }
  });

  it('[CLI-FAILURES] an unforeseen fault keeps its stack', () => {
    expect(describeFailure(new TypeError('boom'), advise)).toMatch(/^unexpected failure: TypeError: boom\n {4}at /);
    expect(describeFailure('text', advise)).toBe('unexpected failure: text');
  });
});
