import { describe, expect, it } from 'vitest';
import { accepts, isAllowedAdminHost, isAllowedHost, isAllowedOrigin, isJsonContent } from './admission.ts';

const LOOPBACK = { listen: { host: '127.0.0.1', port: 8080 }, allowedHosts: null, allowedOrigins: [] };
const PUBLIC = { ...LOOPBACK, listen: { host: '0.0.0.0', port: 8080 } };

describe('Host', () => {
  it.each(['localhost', 'localhost:8080', 'LOCALHOST', '127.0.0.1', '127.0.0.1:1', '127.1.2.3', '[::1]', '[::1]:8080'])(
    '[GW-HOST] a gateway on loopback takes the loopback name %s',
    (host) => {
      expect(isAllowedHost(LOOPBACK, host)).toBe(true);
    },
  );

  it.each([
    undefined,
    '',
    'evil.example',
    'evil.example:8080',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evil.example#localhost',
    'localhost:8080:8080',
    '::1',
  ])('[GW-HOST] a gateway on loopback refuses Host %j, so no name of a stranger reaches it', (host) => {
    expect(isAllowedHost(LOOPBACK, host)).toBe(false);
  });

  it('[GW-HOST] a gateway on another address takes any Host, unless hosts are listed', () => {
    expect(isAllowedHost(PUBLIC, 'mcp.example.org')).toBe(true);
    expect(isAllowedHost(PUBLIC, undefined)).toBe(true);
    const listed = { ...PUBLIC, allowedHosts: ['MCP.example.org'] };
    expect(isAllowedHost(listed, 'mcp.example.org:443')).toBe(true);
    expect(isAllowedHost(listed, 'localhost')).toBe(true);
    expect(isAllowedHost(listed, 'other.example.org')).toBe(false);
    expect(isAllowedHost(listed, undefined)).toBe(false);
  });
});

describe('Origin', () => {
  it('[GW-ORIGIN] no Origin is no error', () => {
    expect(isAllowedOrigin(LOOPBACK, undefined)).toBe(true);
  });

  it.each(['http://localhost', 'http://localhost:6274', 'https://127.0.0.1:1', 'http://[::1]:5000'])(
    '[GW-ORIGIN] the loopback origin %s is allowed',
    (origin) => {
      expect(isAllowedOrigin(LOOPBACK, origin)).toBe(true);
    },
  );

  it.each([
    '',
    'null',
    'localhost',
    'http://evil.example',
    'http://localhost.evil.example',
    'http://localhost@evil.example',
    'http://evil.example/http://localhost',
    'file://localhost',
    'http://localhost/path',
    '\u0000',
  ])('[GW-ORIGIN] the Origin %j is refused', (origin) => {
    expect(isAllowedOrigin(LOOPBACK, origin)).toBe(false);
  });

  it('[GW-ORIGIN] listed origins are allowed as they are written', () => {
    const listed = { ...LOOPBACK, allowedOrigins: ['https://app.example.org'] };
    expect(isAllowedOrigin(listed, 'https://app.example.org')).toBe(true);
    expect(isAllowedOrigin(listed, 'http://app.example.org')).toBe(false);
    expect(isAllowedOrigin(listed, 'https://app.example.org.evil.example')).toBe(false);
  });
});

describe('media types', () => {
  it('[GW-BODY] Accept admits a type by its name, its family or everything', () => {
    expect(accepts('text/event-stream', 'text/event-stream')).toBe(true);
    expect(accepts('application/json;q=0.9, TEXT/Event-Stream ;charset=utf-8', 'text/event-stream')).toBe(true);
    expect(accepts('text/*', 'text/event-stream')).toBe(true);
    expect(accepts('*/*', 'application/json')).toBe(true);
    expect(accepts('application/json', 'text/event-stream')).toBe(false);
    expect(accepts('application/jsonp', 'application/json')).toBe(false);
    expect(accepts('', 'application/json')).toBe(false);
    expect(accepts(undefined, 'application/json')).toBe(false);
  });

  it.each<[string, boolean]>([
    ['text/event-stream;q=0', false],
    ['text/event-stream; Q=0.000', false],
    ['application/json, text/event-stream ; charset=utf-8 ; q=0', false],
    ['*/*;q=0', false],
    ['text/event-stream;q=0, */*', false],
    ['text/*;q=0, */*', false],
    ['*/*, text/*;q=0', false],
    ['text/event-stream, */*;q=0', true],
    ['text/*;q=0, text/event-stream;q=0.001', true],
    ['text/event-stream;q=0.1', true],
    ['text/event-stream;q=', true],
    ['text/event-stream;note=q=0', true],
  ])('[GW-ACCEPT] %s admits an event stream: %s', (header, isAdmitted) => {
    expect(accepts(header, 'text/event-stream')).toBe(isAdmitted);
  });

  it('[GW-BODY] only application/json is a body, whatever its parameters', () => {
    expect(isJsonContent('application/json')).toBe(true);
    expect(isJsonContent('Application/JSON; charset=utf-8')).toBe(true);
    for (const other of [undefined, '', 'text/plain', 'application/json-seq', 'application/x-www-form-urlencoded'])
      expect(isJsonContent(other)).toBe(false);
  });
});

describe('Host of the admin address', () => {
  const config = (host: string, allowedHosts: readonly string[] | null = null) => ({
    listen: { host, port: 0 },
    allowedHosts,
  });
  it.each([
    ['127.0.0.1', null, 'evil.example', false],
    ['127.0.0.1', null, 'evil.example:9464', false],
    ['127.0.0.1', null, '127.0.0.1.evil.example', false],
    ['127.0.0.1', null, '1.2.3.4.5', false],
    ['127.0.0.1', null, '10.0.0.7:9464', true],
    ['127.0.0.1', null, '[::1]:9464', true],
    ['127.0.0.1', null, 'prometheus-target:9464', true],
    ['127.0.0.1', null, undefined, true],
    ['127.0.0.1', ['ops.example.com'], 'OPS.example.com:9464', true],
    ['0.0.0.0', null, 'gateway.ns.svc:9464', true],
    ['0.0.0.0', ['mcp.example.com'], 'gateway.ns.svc:9464', false],
    ['0.0.0.0', ['mcp.example.com'], '10.0.0.7:9464', true],
  ] as const)('[GW-ADMIN-HOST] listening on %s, allowed %j: %s', (listen, allowed, header, isAllowed) => {
    expect(isAllowedAdminHost(config(listen, allowed), header)).toBe(isAllowed);
  });
});
