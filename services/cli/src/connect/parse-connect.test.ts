import { describe, expect, it } from 'vitest';
import { runCli } from '../operate/testing/run-cli.ts';
import { parseArguments } from '../parse-arguments.ts';
import { completeConnect } from './complete-connect.ts';
import type { ConnectRequest } from './connect-request.ts';

const URL_TEXT = 'https://mcp.example.com/mcp';

function requestOf(argv: readonly string[], environment: Readonly<Record<string, string>> = {}): ConnectRequest {
  const { command, faults } = parseArguments(['connect', ...argv]);
  expect(faults).toEqual([]);
  if (command.name !== 'connect') throw new Error(command.name);
  return completeConnect(command.line, { environment, cwd: '/work' });
}

describe('the command line of connect', () => {
  it('[CONNECT-OPTIONS] a URL is enough; the defaults are those that help names', () => {
    expect(requestOf([URL_TEXT])).toEqual({
      url: new URL(URL_TEXT),
      place: '/work',
      stateFolder: null,
      onClose: 'end',
      isFresh: false,
      policy: 'strict',
      giveUpMs: 120_000,
      startWithinMs: 50_000,
      lingerMs: 1000,
      headers: {},
      tokenFile: null,
      allowHttp: false,
      login: {
        when: 'ask',
        withinMs: 300_000,
        doesOpen: false,
        clientId: null,
        clientSecretFile: null,
        scope: null,
        redirectPort: null,
      },
    });
  });

  it('[CONNECT-OPTIONS] every option is taken', () => {
    const argv =
      '--place editor --state-folder state --on-close keep --fresh --policy compatible --give-up 5s --start-within 500ms --linger 2m --token-file token';
    expect(requestOf([URL_TEXT, ...argv.split(' '), '--header', 'X-A: 1'])).toMatchObject({
      place: 'editor',
      stateFolder: '/work/state',
      onClose: 'keep',
      isFresh: true,
      policy: 'compatible',
      giveUpMs: 5000,
      startWithinMs: 500,
      lingerMs: 120_000,
      headers: { 'X-A': '1' },
      tokenFile: '/work/token',
    });
  });

  it('[CONNECT-OPTIONS] every option of a login is taken', () => {
    const argv = '--login now --login-within 1m --open --client-id me --client-secret-file secret --redirect-port 4711';
    expect(requestOf([URL_TEXT, ...argv.split(' '), '--scope', 'a b:c']).login).toEqual({
      when: 'now',
      withinMs: 60_000,
      doesOpen: true,
      clientId: 'me',
      clientSecretFile: '/work/secret',
      scope: 'a b:c',
      redirectPort: 4711,
    });
  });

  it('[CONNECT-AUTH] a variable in a header stands for its value; one that is not set is a fault', async () => {
    const argv = ['connect', URL_TEXT, '--header', 'X-A: Key ${A_KEY}-${B}', '--header', 'X-B: plain'];
    expect(requestOf(argv.slice(1), { A_KEY: 's3cret\n', B: '2' }).headers).toEqual({
      'X-A': 'Key s3cret-2',
      'X-B': 'plain',
    });
    const { code, stderr } = await runCli(argv, { environment: { B: '2' } });
    expect(code).toBe(2);
    expect(stderr).toContain('--header X-A: the environment variable A_KEY is not set.');
  });

  it.each<[argv: string[], fault: string]>([
    [[], 'connect: needs the URL of an MCP server'],
    [['mcp.example.com'], '"mcp.example.com": is no http or https URL'],
    [['ftp://x/y'], '"ftp://x/y": is no http or https URL'],
    [['https://me:secret@x/y'], 'https://x: must hold no user or password'],
    [[URL_TEXT, 'more'], 'more: is one word too many'],
    [[URL_TEXT, '--on-close', 'never'], '--on-close "never": must be one of end, keep'],
    [[URL_TEXT, '--policy', 'lax'], '--policy "lax": must be one of strict, compatible'],
    [[URL_TEXT, '--linger', '3'], '--linger "3": must be a duration'],
    [[URL_TEXT, '--give-up', '0s'], '--give-up "0s": must be from 1ms to 24d'],
    [[URL_TEXT, '--place', ' '], '--place: must not be empty'],
    [[URL_TEXT, '--place', 'a', '--place', 'b'], '--place: is given twice'],
    [[URL_TEXT, '--header', 'secret'], '--header: must be a name, a colon and a value'],
    [[URL_TEXT, '--header', 'A: secret', '--header', 'a: secret'], '--header a: is given twice'],
    [[URL_TEXT, '--header', 'Mcp-Session-Id: secret'], '--header Mcp-Session-Id: is set by throughline'],
    [
      [URL_TEXT, '--token-file', 't', '--header', 'authorization: secret'],
      '--header authorization: excludes --token-file',
    ],
    [['http://mcp.example.com/mcp', '--token-file', 't'], 'http://mcp.example.com: has no TLS'],
    [[URL_TEXT, '--login', 'maybe'], '--login "maybe": must be one of ask, now, never'],
    [[URL_TEXT, '--login', 'now', '--token-file', 't'], '--login: excludes --token-file'],
    [[URL_TEXT, '--login', 'now', '--header', 'Authorization: secret'], '--header Authorization: excludes --login'],
    [[URL_TEXT, '--login-within', '1'], '--login-within "1": must be a duration'],
    [[URL_TEXT, '--redirect-port', '0'], '--redirect-port "0": must be a port, from 1 to 65535'],
    [[URL_TEXT, '--redirect-port', '70000'], '--redirect-port "70000": must be a port, from 1 to 65535'],
    [[URL_TEXT, '--scope', 'a  b'], '--scope: must be scopes with one space between'],
    [[URL_TEXT, '--client-id', ''], '--client-id: must not be empty'],
    [[URL_TEXT, '--client-secret-file', 't'], '--client-secret-file: needs the id that it is of'],
    [
      [URL_TEXT, '--client-id', 'https://me.example/client.json', '--client-secret-file', 't'],
      '--client-secret-file: needs the id that it is of',
    ],
    [
      ['http://mcp.example.com/mcp', '--client-id', 'me', '--client-secret-file', 't'],
      'http://mcp.example.com: has no TLS',
    ],
    [[URL_TEXT, '--listen', '127.0.0.1:1'], '--listen: is no option of connect'],
    [[URL_TEXT, '--json'], '--json: is an option of'],
    [[URL_TEXT, '--config', 'x.yaml'], '--config: is no option of connect'],
  ])('[CONNECT-OPTIONS] %j is refused, by name and without what may be a secret', async (argv, fault) => {
    const { code, stdout, stderr } = await runCli(['connect', ...argv]);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain(fault);
    expect(stderr.replaceAll('--client-secret-file', '')).not.toContain('secret');
  });

  it('[CONNECT-OPTIONS] credentials go without TLS to this machine, and elsewhere only if that is asked for', () => {
    for (const url of ['http://localhost:1/mcp', 'http://127.0.0.1/mcp', 'http://[::1]:8080/mcp'])
      expect(requestOf([url, '--token-file', 't']).url.href).toBe(url);
    expect(requestOf(['http://mcp.example.com/mcp']).headers).toEqual({});
    expect(requestOf(['http://mcp.example.com/mcp', '--token-file', 't', '--allow-http']).tokenFile).toBe('/work/t');
  });

  it('[CONNECT-OPTIONS] its options are none of another command', async () => {
    for (const command of ['serve', 'owners', 'secret new']) {
      const { code, stderr } = await runCli(`${command} --fresh`);
      expect(code).toBe(2);
      expect(stderr).toContain('--fresh: is an option of connect');
    }
  });
});
