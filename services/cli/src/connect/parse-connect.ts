/** From the words and options of a command line to what `connect` is asked for. SPEC: CONNECT-OPTIONS. */
import { refuseForeign } from '../command-options.ts';
import type { CommandOptionName } from '../command-options.ts';
import type { Fault } from '../faults.ts';
import { parseDuration } from '../parse-value.ts';
import type { ConnectLine } from './connect-request.ts';
import { isLoopback } from './is-loopback.ts';
import type { LoginLine } from './login/login-request.ts';

const EXAMPLE = 'write for example throughline connect https://mcp.example.com/mcp';
/** A timer of the platform holds no more. */
const MAX_MS = 2 ** 31 - 1;
const HEADER = /^(?<name>[!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(?<value>[\x20-\x7e]*)$/;
/** Those that the protocol uses. */
const OWN_HEADERS = new Set([
  'accept',
  'connection',
  'content-length',
  'content-type',
  'host',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
  'transfer-encoding',
]);

type Options = ReadonlyMap<CommandOptionName, string>;

/** Undefined: faults say why not. `words` are those behind the command's name. */
export function parseConnect(words: readonly string[], options: Options, faults: Fault[]): ConnectLine | undefined {
  refuseForeign('connect', options, faults);
  for (const extra of words.slice(1)) faults.push({ where: extra, problem: 'is one word too many.' });
  const url = parseUrl(words[0], faults);
  const line = {
    place: parseText('place', options, faults),
    stateFolder: parseText('state-folder', options, faults),
    onClose: parseChoice('on-close', ['end', 'keep'], options, faults),
    isFresh: options.has('fresh'),
    policy: parseChoice('policy', ['strict', 'compatible'], options, faults),
    giveUpMs: parseMs('give-up', 120_000, options, faults),
    startWithinMs: parseMs('start-within', 50_000, options, faults),
    lingerMs: parseMs('linger', 1000, options, faults),
    headers: parseHeaders(options, faults),
    tokenFile: parseText('token-file', options, faults),
    allowHttp: options.has('allow-http'),
    login: parseLogin(options, faults),
  };
  if (url === undefined) return undefined;
  const hasCredentials = line.tokenFile !== null || line.headers.length > 0 || line.login.clientSecretFile !== null;
  if (hasCredentials && url.protocol === 'http:' && !isLoopback(url.hostname) && !line.allowHttp)
    faults.push({
      where: url.origin,
      problem: 'has no TLS, so anybody on the way could read the credentials; use https, or add --allow-http.',
    });
  return { url, ...line };
}

function parseUrl(text: string | undefined, faults: Fault[]): URL | undefined {
  if (text === undefined) {
    faults.push({ where: 'connect', problem: `needs the URL of an MCP server; ${EXAMPLE}.` });
    return undefined;
  }
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    faults.push({ where: JSON.stringify(text.slice(0, 200)), problem: `is no http or https URL; ${EXAMPLE}.` });
    return undefined;
  }
  if (url.username !== '' || url.password !== '') {
    faults.push({ where: url.origin, problem: 'must hold no user or password; use --token-file or --header.' });
    return undefined;
  }
  url.hash = '';
  return url;
}

/** None of them means anything where credentials are given otherwise. */
const LOGIN_OPTIONS = [
  'login',
  'login-within',
  'open',
  'client-id',
  'client-secret-file',
  'scope',
  'redirect-port',
] as const satisfies readonly CommandOptionName[];

function parseLogin(options: Options, faults: Fault[]): LoginLine {
  if (options.has('token-file'))
    for (const name of LOGIN_OPTIONS)
      if (options.has(name))
        faults.push({ where: `--${name}`, problem: 'excludes --token-file; leave one of them out.' });
  const clientId = parseText('client-id', options, faults);
  const clientSecretFile = parseText('client-secret-file', options, faults);
  if (clientSecretFile !== null && (clientId === null || URL.canParse(clientId)))
    faults.push({
      where: '--client-secret-file',
      problem: 'needs the id that it is of; add --client-id <id>.',
    });
  return {
    when: parseChoice('login', ['ask', 'now', 'never'], options, faults),
    withinMs: parseMs('login-within', 300_000, options, faults),
    doesOpen: options.has('open'),
    clientId,
    clientSecretFile,
    scope: parseScope(options, faults),
    redirectPort: parsePort(options, faults),
  };
}

function parseScope(options: Options, faults: Fault[]): string | null {
  const text = parseText('scope', options, faults);
  if (text !== null && text !== '' && !/^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(text))
    faults.push({ where: '--scope', problem: 'must be scopes with one space between, for example "files:read mail".' });
  return text;
}

function parsePort(options: Options, faults: Fault[]): number | null {
  const text = options.get('redirect-port');
  if (text === undefined) return null;
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535)
    faults.push({ where: `--redirect-port ${JSON.stringify(text)}`, problem: 'must be a port, from 1 to 65535.' });
  return port;
}

function parseText(
  name: 'place' | 'state-folder' | 'token-file' | 'client-id' | 'client-secret-file' | 'scope',
  options: Options,
  faults: Fault[],
): string | null {
  const text = options.get(name) ?? null;
  if (text?.trim() === '') faults.push({ where: `--${name}`, problem: 'must not be empty.' });
  return text;
}

/** The first choice is the default. */
function parseChoice<C extends string>(
  name: 'on-close' | 'policy' | 'login',
  choices: readonly [C, ...C[]],
  options: Options,
  faults: Fault[],
): C {
  const text = options.get(name) ?? choices[0];
  const choice = choices.find((each) => each === text);
  if (choice === undefined)
    faults.push({ where: `--${name} ${JSON.stringify(text)}`, problem: `must be one of ${choices.join(', ')}.` });
  return choice ?? choices[0];
}

function parseMs(
  name: 'give-up' | 'start-within' | 'linger' | 'login-within',
  fallback: number,
  options: Options,
  faults: Fault[],
): number {
  const text = options.get(name);
  if (text === undefined) return fallback;
  const parsed = parseDuration(text);
  const problem = !parsed.ok
    ? parsed.problem
    : parsed.value <= 0 || parsed.value > MAX_MS
      ? 'must be from 1ms to 24d'
      : null;
  if (problem !== null) faults.push({ where: `--${name} ${JSON.stringify(text)}`, problem: `${problem}.` });
  return parsed.ok ? parsed.value : fallback;
}

/** What a value holds is never repeated: it may be a secret. */
function parseHeaders(options: Options, faults: Fault[]): ConnectLine['headers'] {
  const headers: [string, string][] = [];
  for (const text of options.get('header')?.split('\n') ?? []) {
    const { name, value } = HEADER.exec(text)?.groups ?? {};
    if (name === undefined || value === undefined) {
      faults.push({
        where: '--header',
        problem: 'must be a name, a colon and a value, for example "X-Api-Key: ${API_KEY}".',
      });
      continue;
    }
    const where = `--header ${name}`;
    const lower = name.toLowerCase();
    if (OWN_HEADERS.has(lower)) faults.push({ where, problem: 'is set by throughline; leave it out.' });
    if (headers.some(([other]) => other.toLowerCase() === lower)) faults.push({ where, problem: 'is given twice.' });
    if (lower === 'authorization')
      for (const other of ['token-file', 'login'] as const)
        if (options.has(other))
          faults.push({ where, problem: `excludes --${other}, which sets it; leave one of them out.` });
    headers.push([name, value.trim()]);
  }
  return headers;
}
