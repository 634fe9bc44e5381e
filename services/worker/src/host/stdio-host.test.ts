import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { systemClock } from '@throughline/log';
import { silentLogger } from '@throughline/telemetry';
import type { Logger } from '@throughline/telemetry';
import { afterEach, describe, expect, it } from 'vitest';
import type { McpHost } from './host.ts';
import { createStdioHost } from './stdio-host.ts';
import type { StdioLimits } from './stdio-session.ts';
import { createRecordingLogger, kindsOf, openDriver } from './testing/host-driver.ts';

const node = `'${process.execPath}'`;
const hosts: McpHost[] = [];

function hostOf(
  command: string,
  limits: Partial<StdioLimits> = {},
  logger: Logger = silentLogger,
  env: Record<string, string> = {},
): McpHost {
  const host = createStdioHost({ command, env }, { logger, clock: systemClock }, limits);
  hosts.push(host);
  return host;
}

/** The command of a script with this source. */
function scriptWith(source: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'throughline stdio ')), 'server.mjs');
  writeFileSync(file, source);
  return `${node} '${file}'`;
}

/** A script that answers each request with what `answer` (source text) makes of it. */
function serverWith(answer: string, prelude = ''): string {
  return scriptWith(`
    import { createInterface } from 'node:readline';
    ${prelude}
    const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
    createInterface({ input: process.stdin }).on('line', (line) => {
      const message = JSON.parse(line);
      ${answer}
    });
  `);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A killed process whose parent does not reap it stays as a zombie.
    return !readFileSync(`/proc/${String(pid)}/stat`, 'utf8')
      .split(') ')[1]
      ?.startsWith('Z');
  } catch {
    return false;
  }
}

afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.close()));
});

describe.each(['v1', 'v2'])('a stdio host with an unmodified SDK %s server', (line) => {
  const command = `${node} '${join(import.meta.dirname, 'testing', `fixture-${line}-stdio.ts`)}'`;

  it('[HOST-STDIO-SDK] [HOST-STDIO-PROGRESS] calls, progress on its own call, questions, notifications', async () => {
    const driver = await openDriver(hostOf(command));
    expect((await driver.initialize())['serverInfo']).toMatchObject({ name: `fixture-${line}` });
    const long = '€𝄞'.repeat(50_000);
    expect(await driver.call('echo', { text: long })).toBe(long);
    expect(await driver.call('countdown', { from: 30 }, { progressToken: 7 })).toBe('done 30');
    expect(kindsOf(driver.received.filter((item) => item.related === 'c3'))).toEqual([
      ...Array.from({ length: 30 }, () => 'notifications/progress'),
      'response',
    ]);
    expect(await driver.call('ask', { question: '?' })).toBe('accept {"answer":"42"}');
    expect(await driver.call('notify', { text: 'hi' })).toBe('notified');
    expect(kindsOf(driver.received)).toContain('notifications/message');
    await driver.session.close();
  });

  it('[HOST-STDIO-EXIT] tells exit code and last words of a child that dies, after what it had sent', async () => {
    const driver = await openDriver(hostOf(command));
    await driver.initialize();
    const params = { name: 'die', arguments: {} };
    await driver.session.deliver({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { canPoll: true });
    expect(await driver.waitGone()).toBe('the stdio server exited with code 3');
    expect(driver.goneDetails[0]).toMatch(/the fixture dies now/);
    await expect(driver.request('ping')).rejects.toMatchObject({ code: 'HOST_GONE' });
    expect(driver.goneReasons).toHaveLength(1);
  });
});

describe('a stdio host', () => {
  it('[HOST-STDIO-SDK] serves the published server-everything', async () => {
    const driver = await openDriver(
      hostOf(`${node} node_modules/@modelcontextprotocol/server-everything/dist/index.js stdio`),
    );
    const { serverInfo } = await driver.initialize();
    expect(serverInfo).toHaveProperty('name');
    expect(await driver.call('echo', { message: 'hello' })).toContain('hello');
  });

  it.each([
    [
      'a command that does not exist',
      'no-such-command-anywhere --flag',
      /"no-such-command-anywhere".*not found.*sh -c/,
    ],
    ['a file that is no program', `'${import.meta.dirname}/stdio-host.ts'`, /cannot be started \(EACCES\)/],
  ])('[HOST-STDIO-SPAWN] rejects with HOST_CONFIG for %s', async (_, command, text) => {
    const opening = openDriver(hostOf(command));
    await expect(opening).rejects.toMatchObject({ name: 'HostError', code: 'HOST_CONFIG' });
    await expect(opening).rejects.toThrow(text);
  });

  it('[HOST-STDIO-SPAWN] names a working directory that does not exist', async () => {
    const host = createStdioHost(
      { command: `${node} -e 0`, cwd: '/no/such/folder' },
      { logger: silentLogger, clock: systemClock },
    );
    await expect(openDriver(host)).rejects.toThrow(/working directory \/no\/such\/folder/);
  });

  it('[HOST-STDIO-ENV] passes PATH and the configured variables, and no secret of its own process', async () => {
    process.env['THROUGHLINE_TEST_SECRET'] = 'secret';
    try {
      const command = serverWith('send({ id: message.id, result: process.env });');
      const driver = await openDriver(hostOf(command, {}, silentLogger, { EXTRA: 'yes' }));
      const { result } = await driver.request('env');
      expect(result).toMatchObject({ PATH: process.env['PATH'], EXTRA: 'yes' });
      expect(result).not.toHaveProperty('THROUGHLINE_TEST_SECRET');
    } finally {
      delete process.env['THROUGHLINE_TEST_SECRET'];
    }
  });

  it('[HOST-STDIO-NOISE] skips lines of stdout that are not JSON-RPC, and logs them at a bounded rate', async () => {
    const { lines, logger } = createRecordingLogger();
    const command = serverWith(
      'send({ id: message.id, result: {} });',
      `process.stdout.write('Server started!\\n\\n{"jsonrpc":"1.0"}\\n[1,2]\\n' + 'noise\\n'.repeat(20000));`,
    );
    const driver = await openDriver(hostOf(command, { log: { perSecond: 1, burst: 10 } }, logger));
    expect(await driver.request('ping')).toMatchObject({ result: {} });
    expect(driver.received).toHaveLength(1);
    const skipped = lines.filter(({ event }) => event === 'host.stdout-skipped');
    expect(skipped[0]?.fields).toMatchObject({ sessionId: 'session-1', start: 'Server started!' });
    expect(skipped.length).toBeGreaterThanOrEqual(10);
    expect(skipped.length).toBeLessThan(20);
  });

  it('[HOST-STDIO-BATCH] takes a batch of 2025-03-26 apart, in order', async () => {
    const command = serverWith(
      `process.stdout.write(JSON.stringify([{ jsonrpc: '2.0', method: 'a' }, { jsonrpc: '2.0', id: message.id, result: {} }]) + '\\r\\n');`,
    );
    const driver = await openDriver(hostOf(command));
    await driver.request('ping');
    expect(kindsOf(driver.received)).toEqual(['a', 'response']);
  });

  it('[HOST-STDIO-STDERR] a flood on stderr neither blocks the child nor floods the log', async () => {
    const { lines, logger } = createRecordingLogger();
    const command = serverWith(
      `const fill = () => { if (left-- > 0) process.stderr.write('x'.repeat(5000) + '\\n', fill); else send({ id: message.id, result: {} }); };
       let left = 2000; fill();`,
    );
    const driver = await openDriver(hostOf(command, { log: { perSecond: 1, burst: 10 } }, logger));
    await driver.request('ping');
    const logged = lines.filter(({ event }) => event === 'host.stderr');
    expect(logged.length).toBeGreaterThanOrEqual(10);
    expect(logged.length).toBeLessThan(25);
    expect(logged[0]?.fields).toMatchObject({ sessionId: 'session-1' });
    expect(String(logged[0]?.fields['line']).length).toBeLessThan(1100);
    await driver.session.close();
    expect(lines.some(({ event, fields }) => event === 'host.stderr-dropped' && Number(fields['dropped']) > 100)).toBe(
      true,
    );
  });

  it('[HOST-STDIO-LINE-BOUND] ends a session whose server writes a line over the bound', async () => {
    const command = serverWith(`process.stdout.write('y'.repeat(300000));`);
    const driver = await openDriver(hostOf(command, { maxLineBytes: 100_000 }));
    await driver.notify('go');
    expect(await driver.waitGone()).toMatch(/line longer than 100000 bytes/);
  });

  it('[HOST-BACKPRESSURE] a slow consumer stops the child instead of filling memory', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'throughline-')), 'written');
    const command = serverWith(
      `let count = 0;
       const more = () => {
         for (;;) {
           count += 1;
           writeFileSync(${JSON.stringify(file)}, String(count));
           if (count === 2000) return;
           if (!process.stdout.write(JSON.stringify({ jsonrpc: '2.0', method: 'n', params: { count, fill: 'z'.repeat(5000) } }) + '\\n')) break;
         }
         process.stdout.once('drain', more);
       };
       more();`,
      `import { writeFileSync } from 'node:fs';`,
    );
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const driver = await openDriver(hostOf(command), { onMessage: () => held });
    await driver.notify('go');
    const written = (): number => {
      try {
        return Number(readFileSync(file, 'utf8'));
      } catch {
        return 0;
      }
    };
    let last = -1;
    await expect
      .poll(
        () => {
          const stands = written() > 0 && written() === last;
          last = written();
          return stands;
        },
        { interval: 150, timeout: 5000 },
      )
      .toBe(true);
    // 5 KB each: pipe and two stream buffers hold far less than 200 of the 2000.
    expect(last).toBeLessThan(200);
    release();
    await driver.waitFor(({ message }) => 'method' in message && message.params?.['count'] === 1999);
    const counts = driver.received.map(({ message }) => ('method' in message ? message.params?.['count'] : undefined));
    expect(counts).toEqual(Array.from({ length: 1999 }, (_, index) => index + 1));
  });

  it('[HOST-STDIO-STDIN] delivery waits for a child that does not read, and the wait has a bound', async () => {
    const command = scriptWith('setInterval(() => {}, 1000);');
    const driver = await openDriver(hostOf(command, { maxWaitingBytes: 3_000_000, stdinMs: 50 }));
    const fill = 'f'.repeat(1_000_000);
    let settled = 0;
    const deliveries = [1, 2, 3].map((n) =>
      driver.notify('n', { n, fill }).finally(() => {
        settled += 1;
      }),
    );
    await Promise.resolve();
    expect(settled).toBe(0);
    deliveries.push(driver.notify('n', { n: 4, fill }));
    const results = await Promise.allSettled(deliveries);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'rejected']);
    expect(driver.goneReasons[0]).toMatch(/does not read its input/);
  });

  it('[HOST-STDIO-EXIT] tells the signal that killed a child', async () => {
    const driver = await openDriver(hostOf(serverWith(`process.kill(process.pid, 'SIGKILL');`)));
    await driver.notify('go');
    expect(await driver.waitGone()).toMatch(/killed by SIGKILL/);
  });

  it('[HOST-STDIO-EXIT] a child that only closes its output is gone as well', async () => {
    const driver = await openDriver(
      hostOf(serverWith(`closeSync(1);`, `import { closeSync } from 'node:fs';`), { stdinMs: 50 }),
    );
    await driver.notify('go');
    expect(await driver.waitGone()).toMatch(/closed its output/);
  });

  it('[HOST-STDIO-KILL] close ends a server that ignores the end of stdin and SIGTERM, in bounded time', async () => {
    const command = serverWith(
      `send({ id: message.id, result: { pid: process.pid } });`,
      `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000);`,
    );
    const driver = await openDriver(hostOf(command, { stdinMs: 100, termMs: 100 }));
    const { pid } = (await driver.request('pid')).result as { pid: number };
    expect(isAlive(pid)).toBe(true);
    const before = performance.now();
    await driver.session.close();
    expect(performance.now() - before).toBeLessThan(2500);
    expect(isAlive(pid)).toBe(false);
    expect(driver.goneReasons).toEqual([]);
  });

  it('[HOST-STDIO-KILL] close ends a server behind a shell that waits for it', async () => {
    const inner = serverWith(
      `send({ id: message.id, result: { pid: process.pid } });`,
      `setInterval(() => {}, 1000); process.stdin.on('end', () => {});`,
    );
    // The shell starts the server as a child of its own and stays.
    const driver = await openDriver(hostOf(`sh -c "${inner}; echo over >&2"`, { stdinMs: 50 }));
    const { pid } = (await driver.request('pid')).result as { pid: number };
    await driver.session.close();
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  it('[HOST-STDIO-KILL] what a wrapper leaves behind when it exits is ended too', async () => {
    const inner = serverWith(`send({ id: message.id, result: { pid: process.pid } });`, `setInterval(() => {}, 1000);`);
    const driver = await openDriver(
      hostOf(`sh -c "exec 3<&0; ${inner} <&3 & read -t 5 x < /dev/null; sleep 0.5"`, { outputMs: 50 }),
    );
    const { pid } = (await driver.request('pid')).result as { pid: number };
    expect(await driver.waitGone()).toMatch(/exited with code/);
    await expect.poll(() => isAlive(pid), { timeout: 5000 }).toBe(false);
  });

  it('[HOST-STDIO-ORPHAN] children end when the process of the host is killed with SIGKILL', async () => {
    const hostUrl = pathToFileURL(join(import.meta.dirname, 'stdio-host.ts')).href;
    const fixture = join(import.meta.dirname, 'testing', 'fixture-v2-stdio.ts');
    const script = `
      import { createStdioHost } from ${JSON.stringify(hostUrl)};
      import { systemClock } from '@throughline/log';
      import { silentLogger } from '@throughline/telemetry';
      const host = createStdioHost({ command: ${JSON.stringify(`${node} '${fixture}'`)} }, { clock: systemClock, logger: { ...silentLogger, child: (fields) => { if (fields.pid) process.stdout.write(fields.pid + '\\n'); return silentLogger; } } });
      await host.open({ sessionId: 's', principal: 'p', signal: new AbortController().signal }, { onMessage: async () => {}, onCloseStream() {}, onGone() {} });
      setInterval(() => {}, 1000);
    `;
    const { spawn } = await import('node:child_process');
    const parent = spawn(process.execPath, ['--conditions=@throughline/source', '--input-type=module', '-e', script], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await new Promise<[Buffer]>((resolve) =>
      parent.stdout.once('data', (chunk: Buffer) => {
        resolve([chunk]);
      }),
    );
    const pid = Number(line.toString());
    expect(isAlive(pid)).toBe(true);
    parent.kill('SIGKILL');
    await expect.poll(() => isAlive(pid), { timeout: 8000 }).toBe(false);
  });
});
