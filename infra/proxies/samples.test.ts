import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PROXY_NAMES } from './find-proxy.ts';
import { adaptSample, readSample } from './start-proxy.ts';

const read = (page: string): string => readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
const PAGE = read('operations/proxies.md');

/** Seconds, from a text such as `50 s`, `50s` or `300 s`. */
function seconds(text: string): number {
  const found = /(\d+) ?s\b/.exec(text)?.[1];
  if (found === undefined) throw new Error(`no seconds in "${text}"`);
  return Number(found);
}

/** Rows of the table whose second column has this head: name and seconds. */
function tableOf(head: string): [name: string, seconds: number][] {
  const table = PAGE.split('\n\n').find((block) => block.startsWith('| load balancer') && block.includes(`| ${head} `));
  if (table === undefined) throw new Error(`no table of "${head}"`);
  return table
    .split('\n')
    .slice(2)
    .filter((line) => line.startsWith('|'))
    .map((line) => {
      const [, name = '', time = ''] = line.split('|').map((cell) => cell.trim());
      return [name, seconds(time)];
    });
}

describe('the keepalive', () => {
  // Another test holds this page to the table of options.
  const keepAlive = seconds(/^\| `--keep-alive .*$/m.exec(read('reference/config.md'))?.[0] ?? '');
  const idle = tableOf('idle timeout');

  it('[PRX-KEEPALIVE] is below every idle timeout of the table by default', () => {
    expect(idle.length).toBeGreaterThanOrEqual(8);
    for (const [name, timeout] of idle) expect(keepAlive, name).toBeLessThan(timeout);
  });

  it('[PRX-KEEPALIVE] is at most half of the timeouts of the samples', () => {
    expect(keepAlive).toBeLessThanOrEqual(50 / 2);
    expect(Object.fromEntries(idle)).toMatchObject({
      'HAProxy, `infra/proxies/haproxy.cfg`': 50,
      'nginx, `infra/proxies/nginx.conf`; ingress-nginx': 60,
      'AWS Application Load Balancer': 60,
    });
    const haproxy = readSample('haproxy');
    for (const line of ['timeout client 50s', 'timeout server 50s']) expect(haproxy).toContain(`  ${line}\n`);
    // The default of nginx is 60 s.
    expect(readSample('nginx')).not.toContain('_read_timeout');
  });
});

describe('the samples', () => {
  it.each(PROXY_NAMES)(
    '[PRX-SAMPLES] %s has two gateways and no stickiness, and its lines stand in the page',
    (name) => {
      const lines = readSample(name)
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== '' && !line.startsWith('#'));
      expect(
        lines.filter((line) => /^server .*:/.test(line)).map((line) => /127\.0\.0\.1:\d+/.exec(line)?.[0]),
      ).toEqual(['127.0.0.1:8081', '127.0.0.1:8082']);
      expect(lines.join('\n')).not.toMatch(/cookie|stick|ip_hash|balance source/);
      const own = [...PAGE.matchAll(/^\| (HAProxy|nginx): ([^|]+)\|/gm)]
        .filter(([, of]) => of?.toLowerCase() === name)
        .flatMap(([, , text = '']) => [...text.matchAll(/`([^`]+)`/g)].map(([, line = '']) => line));
      expect(own.length).toBeGreaterThanOrEqual(5);
      for (const line of own) expect(lines.join('\n')).toContain(line);
    },
  );

  it('[PRX-SAMPLES] HAProxy asks the admin port of each gateway whether it is ready', () => {
    expect(readSample('haproxy')).toMatch(/^ +option httpchk GET \/readyz$/m);
    expect(readSample('haproxy')).toMatch(
      /server gateway-1 127\.0\.0\.1:8081 port 9481\n +server gateway-2 127\.0\.0\.1:8082 port 9482\n$/,
    );
  });

  it('[PRX-SAMPLES] a change of what a sample does not say is an error', () => {
    expect(adaptSample('a 1\nb 1\n', { 'a 1': 'a 2' })).toBe('a 2\nb 1\n');
    expect(() => adaptSample('a 1\n', { 'c 1': 'c 2' })).toThrow('the sample does not say "c 1"');
  });
});
