import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { GatewayConfigSchema } from '@throughline/gateway/config';
import { ServerSchema, WorkerConfigSchema } from '@throughline/worker/config';
import { makeSelfSigned } from '@throughline/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OPTION_NAMES, optionRow } from './option-table.ts';
import { parseValue } from './parse-value.ts';
import { printSettings } from './print-settings.ts';
import type { Environment } from './read-environment.ts';
import type { Settings } from './settings.ts';
import { DEMO_MODULE, faultsOfLine, loadLine } from './testing/load-line.ts';

const SECRET = Buffer.alloc(32, 7).toString('base64url');
const HASH = 'ab'.repeat(32);

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(path.join(tmpdir(), 'throughline-settings-'));
});
afterEach(() => {
  rmSync(cwd, { recursive: true });
});

function write(name: string, text: string): void {
  mkdirSync(path.dirname(path.join(cwd, name)), { recursive: true });
  writeFileSync(path.join(cwd, name), text);
}

const load = (line: string | readonly string[], environment: Environment = {}): Settings =>
  loadLine(line, environment, cwd);
const faults = (line: string | readonly string[], environment: Environment = {}): string[] =>
  faultsOfLine(line, environment, cwd);

describe('layers', () => {
  it('[CLI-LAYERS] flags win over the environment, the environment over the file, the file over defaults', () => {
    write(
      'throughline.yaml',
      'listen: 127.0.0.1:1\nadmin: 127.0.0.1:2\nlog: { url: "memory:", retention: 3h }\nlimits: { maxBody: 8KiB }\n',
    );
    const environment = { THROUGHLINE_LISTEN: '127.0.0.1:11', THROUGHLINE_ADMIN: '127.0.0.1:12' };
    const settings = load('serve --listen 127.0.0.1:21', environment);
    expect(settings.gateway.listen.port).toBe(21);
    expect(settings.gateway.admin?.port).toBe(12);
    expect(settings.log).toMatchObject({
      location: { kind: 'memory' },
      retentionMs: 10_800_000,
      maxBytes: 4 * 1024 ** 3,
      partitions: 4,
    });
    expect(settings.gateway.maxBodyBytes).toBe(8192);
    expect(settings.gateway.maxConnections).toBe(10_000);
  });

  it('[CLI-LAYERS] of options that exclude each other, a higher layer replaces the choice of a lower one', () => {
    const environment = { THROUGHLINE_MODULE: 'from-environment' };
    expect(load(['serve', '--stdio', 'from flag'], environment).worker.servers['default']).toMatchObject({
      stdio: 'from flag',
    });
    expect(load('serve', environment).worker.servers['default']).toMatchObject({ module: 'from-environment' });
    expect(faults(['serve', '--stdio', 'a', '--module', 'b'])).toEqual([expect.stringContaining('exclude each other')]);
  });

  it('[CLI-LAYERS] an empty variable counts as not set', () => {
    expect(load('serve', { THROUGHLINE_LISTEN: '' }).gateway.listen).toEqual({ host: '127.0.0.1', port: 8080 });
  });

  it('[CLI-LAYERS] a named file must exist, the default one need not', () => {
    expect(faults('serve')).toEqual([]);
    expect(faults('serve --config no.yaml')).toEqual(['--config "no.yaml": there is no such file.']);
    expect(faults('serve', { THROUGHLINE_CONFIG: 'no.yaml' })).toHaveLength(1);
  });

  it('[CLI-LAYERS] relative paths in the file are relative to the file', () => {
    write('conf/t.yaml', 'log: sqlite:data/x.db\nservers: { a: { module: ./s.js }, b: { stdio: run, cwd: sub } }\n');
    const settings = load('serve --config conf/t.yaml');
    expect(settings.log.location).toEqual({ kind: 'sqlite', file: path.join(cwd, 'conf/data/x.db') });
    expect(settings.worker.servers['a']?.module).toBe(path.join(cwd, 'conf/s.js'));
    expect(settings.worker.servers['b']?.cwd).toBe(path.join(cwd, 'conf/sub'));
  });

  it('[CLI-ADDRESSES] one address for clients and for metrics is refused; a worker has an admin port only where it is set', () => {
    expect(faults('serve --listen 127.0.0.1:81 --admin 127.0.0.1:81')).toEqual([
      '--admin "127.0.0.1:81": is the address of --listen as well; give them different ports, or --admin off.',
    ]);
    expect(faults('serve --listen 127.0.0.1:0 --admin 127.0.0.1:0')).toEqual([]);
    expect(load('worker --log sqlite:x').workerAdmin).toBeNull();
    expect(load('worker --log sqlite:x --admin 127.0.0.1:9465').workerAdmin).toEqual({ host: '127.0.0.1', port: 9465 });
    expect(load('worker --log sqlite:x --admin off').workerAdmin).toBeNull();
  });

  it('[CLI-DEFAULTS] the documented defaults are those of the schemas', () => {
    const compared: string[] = [];
    const shapes = { gateway: GatewayConfigSchema.shape, worker: WorkerConfigSchema.shape } as const;
    for (const name of OPTION_NAMES) {
      const row = optionRow(name);
      if (row.default === null) continue;
      const parsed = parseValue(row.kind, row.default, row);
      expect(parsed.ok, name).toBe(true);
      for (const role of ['gateway', 'worker'] as const) {
        const field = row[role];
        if (field === undefined) continue;
        const schema = (shapes[role] as Record<string, { parse(value: unknown): unknown }>)[field];
        expect(parsed.ok && parsed.value, `${name} of ${role}`).toEqual(schema?.parse(undefined));
        compared.push(name);
      }
    }
    expect(compared.length).toBeGreaterThan(15);
    expect(load(['serve', '--stdio', 'x']).worker.servers['default']).toEqual(ServerSchema.parse({ stdio: 'x' }));
  });

  it('[CLI-DEFAULTS] every field of the schemas can be set by an option, or is made from some', () => {
    for (const [role, schema, made] of [
      ['gateway', GatewayConfigSchema, ['servers', 'secrets', 'tokens', 'issuers', 'tls']],
      ['worker', WorkerConfigSchema, ['servers']],
    ] as const) {
      const set = OPTION_NAMES.map((name) => optionRow(name)[role]).filter((field) => field !== undefined);
      expect([...set, ...made].sort()).toEqual(Object.keys(schema.shape).sort());
    }
  });
});

describe('faults', () => {
  it('[CLI-FAULTS] all faults of all layers are in one error', () => {
    write(
      'throughline.yaml',
      'lisen: x\nlimits:\n  maxBody: 4 parsecs\n  drian: 1s\nservers: { A: { stdio: x, modul: y } }\n',
    );
    const all = faults('serve --log kafka:b:9092 --retention 24 --what', {
      THROUGHLINE_LISTEN: '8080',
      THROUGHLINE_LOGLEVEL: 'debug',
      PATH: '/bin',
    });
    const expected = [
      '--what: no such option',
      'THROUGHLINE_LOGLEVEL: no such variable; unset it. Did you mean THROUGHLINE_LOG_LEVEL?',
      'throughline.yaml: lisen: no such setting. Did you mean listen?',
      'throughline.yaml: limits.drian: no such setting. Did you mean limits.drain?',
      'THROUGHLINE_LISTEN "8080": must be host:port',
      '--log "kafka:b:9092": must name brokers and nothing else',
      '--retention "24": must be a duration with its unit',
      'throughline.yaml: limits.maxBody "4 parsecs": must be a size',
      'throughline.yaml: servers.A: a server name is 1 to 63 lower-case letters',
      'throughline.yaml: servers.A.modul: no such setting. Did you mean module?',
    ];
    for (const start of expected)
      expect(
        all.some((fault) => fault.startsWith(start)),
        start,
      ).toBe(true);
    expect(all).toHaveLength(expected.length);
  });

  it('[CLI-FAULTS] a number outside its range names the range in the unit of the option', () => {
    expect(faults('serve --max-body 10')).toEqual(['--max-body "10": must be at least 1KiB.']);
    expect(faults('serve --keep-alive 1ms')).toEqual(['--keep-alive "1ms": must be at least 100ms.']);
    expect(faults('serve --keep-alive 40d')).toEqual(['--keep-alive "40d": must be at most 1d.']);
    expect(faults('serve --append-timeout 1ms')).toEqual(['--append-timeout "1ms": must be at least 100ms.']);
    expect(faults('serve --partitions 0')).toEqual(['--partitions "0": must be from 1 to 256.']);
    expect(faults('serve --max-size 1MiB')).toEqual([expect.stringContaining('at least 16MiB')]);
    expect(faults('serve --retention 10ms')).toEqual([expect.stringContaining('at least 1s')]);
  });

  it('[CLI-FAULTS] options that contradict each other are refused', () => {
    expect(faults('serve --refresh 50m --retention 1h')).toEqual([
      expect.stringContaining('half of the retention (1h)'),
    ]);
    expect(faults('serve --heartbeat 3s')).toEqual([expect.stringContaining('half of --dead-after (4s)')]);
    expect(faults('worker --log memory:')).toEqual([expect.stringContaining('other processes cannot see it')]);
  });

  it('[CLI-FAULTS] YAML that cannot be read names its line', () => {
    write('throughline.yaml', 'listen: 127.0.0.1:1\nlog: memory: x\n');
    expect(faults('serve')).toEqual([expect.stringMatching(/^throughline\.yaml, line 2: no valid YAML: /)]);
    write('throughline.yaml', '- a\n- b\n');
    expect(faults('serve')).toEqual(['throughline.yaml: must hold names and values.']);
    write('throughline.yaml', 'limits: 3\nlisten: [a, b]\n');
    expect(faults('serve')).toEqual([
      expect.stringContaining('throughline.yaml: limits: is a section'),
      expect.stringContaining('throughline.yaml: listen: must be one value'),
    ]);
  });

  it('[CLI-SUGGEST] a setting at the wrong place is told its place', () => {
    write('throughline.yaml', 'maxBody: 8KiB\ntokensFile: x\n');
    expect(faults('serve')).toEqual([
      expect.stringContaining('Did you mean limits.maxBody?'),
      expect.stringContaining('Did you mean auth.tokensFile?'),
    ]);
  });

  it('[CLI-DEFAULTS] with a short retention idle streams are refreshed within it', () => {
    expect(load('serve --retention 1m').gateway.refreshMs).toBe(15_000);
    expect(load('serve').gateway.refreshMs).toBe(600_000);
    expect(load('serve --refresh 1m').gateway.refreshMs).toBe(60_000);
  });

  it('[CLI-LAYERS] one drain time is given to both roles', () => {
    const settings = load('serve --drain 3s');
    expect([settings.gateway.drainMs, settings.worker.drainMs]).toEqual([3000, 3000]);
  });
});

describe('servers', () => {
  it('[CLI-SERVERS] with none configured the demo server is served and restored', () => {
    const settings = load('serve');
    expect(settings.serverOrigin).toBe('demo');
    expect(settings.worker.servers).toEqual({
      default: ServerSchema.parse({ module: DEMO_MODULE, onOwnerLoss: 'restore' }),
    });
    expect(settings.gateway.servers).toEqual(['default']);
    expect(load('serve --on-owner-loss terminate').worker.servers['default']?.onOwnerLoss).toBe('terminate');
  });

  it('[CLI-SERVERS] an option makes one server named default, in place of those of the file', () => {
    write('throughline.yaml', 'servers: { a: { stdio: x }, b: { stdio: y } }\n');
    expect(Object.keys(load('serve').worker.servers)).toEqual(['a', 'b']);
    expect(load('gateway').gateway.servers).toEqual(['a', 'b']);
    const settings = load('serve --module ./s.js --on-owner-loss restore --idle-ttl 2m --max-sessions 5');
    expect(settings.worker.servers).toEqual({
      default: { module: path.join(cwd, 's.js'), onOwnerLoss: 'restore', idleTtl: 120, maxSessions: 5 },
    });
  });

  it('[CLI-SERVERS] an option of one server is refused when the file names the servers', () => {
    write('throughline.yaml', 'servers: { a: { stdio: x } }\n');
    expect(faults('serve --on-owner-loss restore')).toEqual([expect.stringContaining('set it there')]);
  });

  it('[CLI-SERVERS] a server that cannot be is refused where it stands', () => {
    expect(faults('serve --upstream ftp://x')).toEqual([expect.stringMatching(/^--upstream: /)]);
    expect(faults('serve --stdio x --idle-ttl 1ms')).toEqual(['--idle-ttl: must be whole seconds, at least 1s.']);
    write('throughline.yaml', 'servers: {}\n');
    expect(faults('serve')).toEqual([expect.stringContaining('must name at least one server')]);
    write('throughline.yaml', 'servers: { a: { stdio: x, upstream: "http://y" }, b: {} }\n');
    expect(faults('serve')).toHaveLength(2);
  });
});

describe('access', () => {
  it('[CLI-EXPOSED] an address that others can reach needs tokens, or the word that it needs none', () => {
    for (const host of ['0.0.0.0', '[::]', '10.0.0.1', 'example.internal', '127.evil.example'])
      expect(faults(`serve --listen ${host}:1`), host).toEqual([expect.stringContaining('--allow-anonymous')]);
    for (const host of ['127.0.0.1', '127.8.8.8', '[::1]', 'localhost'])
      expect(faults(`serve --listen ${host}:1`), host).toEqual([]);
    expect(load('serve --listen 0.0.0.0:1 --allow-anonymous').warnings).toHaveLength(1);
    write('tokens', `alice:${HASH}\n`);
    expect(load('gateway --listen 0.0.0.0:1 --auth-tokens-file tokens').warnings).toEqual([]);
    expect(load('serve').warnings).toEqual([]);
  });

  it('[CLI-TOKENS] tokens are read from their file, by name and hash', () => {
    write('tokens', `# people\n\nalice:${HASH}\r\nbob:${'CD'.repeat(32)}\n`);
    expect(load('serve --auth-tokens-file tokens').gateway.tokens).toEqual([
      { principal: 'alice', sha256: HASH },
      { principal: 'bob', sha256: 'cd'.repeat(32) },
    ]);
    expect(load('serve').gateway.tokens).toBeNull();
  });

  it('[CLI-TOKENS] a line that is no token, a repeated one, an empty and a missing file are faults', () => {
    write('tokens', `alice:${HASH}\nplain-token\nbob:${HASH}\n`);
    expect(faults('serve', { THROUGHLINE_AUTH_TOKENS_FILE: 'tokens' })).toEqual([
      expect.stringMatching(/^THROUGHLINE_AUTH_TOKENS_FILE "tokens": line 2 is not /),
      expect.stringMatching(/line 3 repeats a token/),
    ]);
    write('empty', '# nobody\n');
    expect(faults('serve --auth-tokens-file empty')).toEqual([expect.stringContaining('nobody could call')]);
    expect(faults('serve --auth-tokens-file nowhere')).toEqual([expect.stringContaining('there is no such file')]);
    expect(faults('serve --listen 0.0.0.0:1 --auth-tokens-file nowhere')).toHaveLength(1);
  });

  const ISSUER = '--auth-issuer https://id.example --auth-jwks-url https://id.example/jwks';

  it('[CLI-ISSUERS] an issuer comes from options, and replaces those of the file', () => {
    const one = { issuer: 'https://id.example', jwksUrl: 'https://id.example/jwks', audience: null };
    expect(load(`serve ${ISSUER}`).gateway.issuers).toMatchObject([one]);
    expect(load('serve').gateway.issuers).toEqual([]);
    write(
      'throughline.yaml',
      'auth:\n  issuers:\n    - { issuer: "https://a.example", jwksUrl: "https://a.example/jwks", audience: [api], algorithms: [EdDSA] }\n    - { issuer: "https://b.example", keysFile: keys.json }\n',
    );
    write('keys.json', JSON.stringify({ keys: [{ kty: 'EC', kid: 'k' }] }));
    expect(load('serve').gateway.issuers).toMatchObject([
      { issuer: 'https://a.example', audience: ['api'], algorithms: ['EdDSA'] },
      { issuer: 'https://b.example', keys: [{ kty: 'EC', kid: 'k' }] },
    ]);
    expect(load(`serve ${ISSUER}`).gateway.issuers).toMatchObject([one]);
  });

  it('[CLI-ISSUERS] what makes no issuer is a fault where it stands', () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    write('public.pem', publicKey.export({ type: 'spki', format: 'pem' }) as string);
    write('private.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
    write('cut.pem', '-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n');
    write('secret.json', JSON.stringify({ keys: [{ kty: 'oct', k: 'aGlkZGVu' }] }));
    write('text', 'hello');
    const withKeys = (file: string): string => `serve --auth-issuer https://id.example --auth-keys-file ${file}`;
    expect(load(withKeys('public.pem')).gateway.issuers).toMatchObject([{ keys: [{ kty: 'EC', crv: 'P-256' }] }]);
    for (const [line, fault] of [
      [withKeys('private.pem'), /^--auth-keys-file: .*private/],
      [withKeys('cut.pem'), /^--auth-keys-file: .*cannot be read/],
      [withKeys('secret.json'), /^--auth-keys-file: .*public/],
      [withKeys('text'), /^--auth-keys-file: .*JWK set/],
      [withKeys('nowhere'), /no such file/],
      ['serve --auth-issuer https://id.example', /^--auth-issuer: .*either/],
      [`${withKeys('public.pem')} --auth-jwks-url https://id.example/jwks`, /^--auth-issuer: .*either/],
      ['serve --auth-issuer id --auth-jwks-url https://id.example/jwks', /^--auth-issuer: .*URL/],
      ['serve --auth-issuer https://id.example --auth-jwks-url http://id.example/jwks', /^--auth-jwks-url: .*https/],
      [`serve ${ISSUER} --auth-algorithms HS256`, /^--auth-algorithms: .*RS256/],
      ['serve --auth-audience api', /^--auth-audience: .*--auth-issuer/],
    ] as const)
      expect(faults(line), line).toEqual([expect.stringMatching(fault)]);
    expect(faults(withKeys('secret.json')).join('')).not.toContain('aGlkZGVu');
    const inFile = (text: string): string[] => {
      write('throughline.yaml', `auth: { issuers: ${text} }\n`);
      return faults('serve');
    };
    expect(inFile('{}')).toEqual([expect.stringMatching(/auth\.issuers: must be a list/)]);
    expect(inFile('[{ issuer: "https://a.example", jwskUrl: x }]')).toEqual([
      expect.stringMatching(/auth\.issuers\[0\]\.jwskUrl: .*Did you mean jwksUrl/),
    ]);
    const twice = '{ issuer: "https://a.example", jwksUrl: "https://a.example/jwks" }';
    expect(inFile(`[${twice}, ${twice}]`)).toEqual([expect.stringContaining('twice')]);
  });

  it('[CLI-PUBLIC-URL] with an issuer it is named, or that of a loopback address', () => {
    expect(load(`serve ${ISSUER}`).gateway.publicUrl).toBe('http://127.0.0.1:8080');
    expect(load('serve').gateway.publicUrl).toBeNull();
    for (const address of ['0.0.0.0:80', '127.0.0.1:0'])
      expect(faults(`serve ${ISSUER} --listen ${address}`)).toEqual([expect.stringMatching(/^--public-url: /)]);
    const named = load(`gateway ${ISSUER} --listen 0.0.0.0:80 --public-url https://mcp.example`);
    expect([named.gateway.publicUrl, named.warnings]).toEqual(['https://mcp.example', []]);
    expect(load(`serve ${ISSUER} --public-url https://mcp.example/a/mcp-x`).gateway.publicUrl).toMatch(/mcp-x$/);
    for (const url of ['mcp.example', 'https://mcp.example?x=1', 'https://u:p@mcp.example', 'https://mcp.example/mcp/'])
      expect(faults(`serve ${ISSUER} --public-url ${url}`), url).toEqual([expect.stringMatching(/^--public-url /)]);
  });

  it.each([
    [ISSUER, 'http://mcp.example', false],
    [ISSUER, 'http://10.0.0.5:8080/tools', false],
    [ISSUER, 'http://localhost.example', false],
    ['--auth-tokens-file tokens', 'http://mcp.example', false],
    [ISSUER, 'https://mcp.example', true],
    [ISSUER, 'http://127.0.0.2:8080', true],
    [ISSUER, 'http://[::1]:8080', true],
    [ISSUER, 'http://LOCALHOST:8080', true],
    ['', 'http://mcp.example', true],
  ])(
    '[CLI-PUBLIC-URL] %s with %s, which has to be https off loopback where tokens are sent: %j',
    (auth, url, isTaken) => {
      write('tokens', `ops:${HASH}\n`);
      for (const role of ['serve', 'gateway']) {
        const command = [role, ...auth.split(' ').filter((word) => word !== ''), '--public-url', url];
        if (isTaken) expect(load(command).gateway.publicUrl).toBe(url);
        else
          expect(faults(command)).toEqual([
            `--public-url "${url}": must be https, since clients send tokens to it (RFC 9728); let a proxy speak TLS, or set --tls-cert and --tls-key. Only an address of this machine may be http.`,
          ]);
      }
    },
  );

  it('[CLI-PUBLIC-URL] is not the business of who does not serve', () => {
    write('tokens', `ops:${HASH}\n`);
    const environment = { THROUGHLINE_PUBLIC_URL: 'http://mcp.example', THROUGHLINE_AUTH_TOKENS_FILE: 'tokens' };
    expect(faults('worker', environment)).toEqual([]);
    expect(faults('serve', environment)).toEqual([expect.stringContaining('must be https')]);
  });

  it('[GW-PROXY-RANGE] [AUTH-LIMIT-ADDRESS] proxies are trusted where they are named, and limits set where they are', () => {
    const { gateway } = load('serve');
    expect([gateway.trustProxy, gateway.requestsPerSecondPerPrincipal, gateway.streamsPerPrincipal]).toEqual([
      [],
      null,
      null,
    ]);
    const set = load(
      'serve --trust-proxy 10.0.0.0/24,loopback --max-requests-per-principal 5 --max-new-sessions-per-principal 6',
    ).gateway;
    expect([set.trustProxy, set.requestsPerSecondPerPrincipal, set.newSessionsPerHourPerPrincipal]).toEqual([
      ['10.0.0.0/24', 'loopback'],
      5,
      6,
    ]);
    expect(faults('gateway --log sqlite:x --trust-proxy loopback,proxy.example')).toEqual([
      '--trust-proxy "loopback,proxy.example": must be addresses or ranges of proxies, such as 10.0.0.5,10.0.0.0/24,fd00::/64, or loopback; "proxy.example" is none.',
    ]);
    expect(faults('serve --max-streams-per-principal 0')).toEqual([
      '--max-streams-per-principal "0": must be at least 1.',
    ]);
  });

  it('[CLI-TLS] takes a certificate and a key, from where they were written', () => {
    const own = makeSelfSigned(cwd, 'own');
    expect(load('serve --tls-cert own.pem --tls-key own.key').gateway.tls).toEqual({
      certFile: own.certFile,
      keyFile: own.keyFile,
    });
    expect(load(`gateway ${ISSUER} --tls-cert own.pem --tls-key own.key`).gateway.publicUrl).toBe(
      'https://127.0.0.1:8080',
    );
    expect(load('serve').gateway.tls).toBeNull();
    expect(faults('serve --tls-cert a.pem')).toEqual([expect.stringMatching(/^--tls-cert: .*--tls-key/)]);
    expect(faults('serve --tls-key a.pem')).toEqual([expect.stringMatching(/^--tls-key: .*--tls-cert/)]);
  });

  it('[CLI-TLS] [CLI-FAULTS] files that are missing, swapped, of different pairs or encrypted are faults of the option that names them', () => {
    makeSelfSigned(cwd, 'own');
    makeSelfSigned(cwd, 'other');
    const { privateKey } = generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'hush' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    write('encrypted.key', privateKey);
    const said = (cert: string, key: string): string[] => faults(`gateway --tls-cert ${cert} --tls-key ${key}`);
    expect(said('no.pem', 'own.key')).toEqual(['--tls-cert "no.pem": there is no such file.']);
    expect(said('own.pem', '.')).toEqual(['--tls-key ".": this is a folder, not a file.']);
    expect(said('own.key', 'own.pem')).toEqual([
      '--tls-cert "own.key": holds a key, and no certificate in PEM.',
      '--tls-key "own.pem": holds a certificate, and no private key in PEM.',
    ]);
    expect(said('own.pem', 'other.key')).toEqual([
      '--tls-key "other.key": is not the key of the certificate of --tls-cert.',
    ]);
    expect(said('own.pem', 'encrypted.key')).toEqual([
      '--tls-key "encrypted.key": is encrypted; write the key without a passphrase.',
    ]);
    // The file that gateways and workers share may name what only gateways have.
    expect(faults('worker', { THROUGHLINE_TLS_CERT: 'no.pem', THROUGHLINE_TLS_KEY: 'no.key' })).toEqual([]);
  }, 30_000);

  it('[CLI-ISSUERS] [CLI-REDACT] a password in the URL of an issuer or its keys is refused, and not in what is printed', () => {
    for (const [line, option] of [
      ['--auth-issuer https://me:hush@id.example --auth-jwks-url https://id.example/jwks', '--auth-issuer'],
      ['--auth-issuer https://id.example --auth-jwks-url https://me:hush@id.example/jwks', '--auth-jwks-url'],
    ] as const)
      expect(faults(`serve ${line}`)).toEqual([`${option}: must hold no user or password.`]);
  });

  it('[CLI-FAULTS] hosts and origins that could never match are refused', () => {
    const good = '--allowed-hosts mcp.example,10.0.0.1,[2001:db8::1]';
    expect(faults(`serve ${good} --allowed-origins https://a.example:8443,vscode-webview://x1,null`)).toEqual([]);
    for (const host of ['https://mcp.example', 'mcp.example:443', 'mcp.example/mcp', '*', '*.example'])
      expect(faults(`serve --allowed-hosts ${host}`), host).toEqual([expect.stringMatching(/^--allowed-hosts /)]);
    for (const origin of ['a.example', 'https://a.example/', 'https://a.example:443', 'https://A.example', '*'])
      expect(faults(`serve --allowed-origins ${origin}`), origin).toEqual([
        expect.stringMatching(/^--allowed-origins /),
      ]);
  });

  it('[CLI-FAULTS] an upstream that is no http URL is told what to write', () => {
    for (const url of ['ftp://a.example/mcp', 'a.example'])
      expect(faults(`serve --upstream ${url}`), url).toEqual([
        '--upstream: must be an http or https URL, such as https://mcp.example.com/mcp.',
      ]);
  });

  it('[CLI-SECRET] secrets come from the environment or a file; the first signs', () => {
    const other = Buffer.alloc(40, 9).toString('base64url');
    expect(load('serve').secrets).toBeNull();
    expect(load('serve', { THROUGHLINE_SECRETS: `${SECRET},${other}` }).secrets).toEqual([
      new Uint8Array(32).fill(7),
      new Uint8Array(40).fill(9),
    ]);
    write('secrets', `# new\n${other}\n# old\n${SECRET}\n`);
    expect(load('serve', { THROUGHLINE_SECRETS_FILE: 'secrets' }).secrets?.map((secret) => secret.length)).toEqual([
      40, 32,
    ]);
  });

  it('[CLI-SECRET] a short or odd secret is refused without being printed', () => {
    const environment = { THROUGHLINE_SECRETS: `${SECRET},short-secret` };
    const all = faults('serve', environment);
    expect(all).toEqual([expect.stringMatching(/^THROUGHLINE_SECRETS: secret 2 is not 32 bytes/)]);
    expect(all.join()).not.toContain('short-secret');
    write('none', '\n');
    expect(faults('serve --secrets-file none')).toEqual([expect.stringContaining('it holds no secret')]);
    expect(faults('serve', { THROUGHLINE_SECRETS: SECRET, THROUGHLINE_SECRETS_FILE: 'none' })).toContainEqual(
      expect.stringContaining('exclude each other'),
    );
  });
});

describe('printSettings', () => {
  it('[CLI-REDACT] secrets, headers, environments and credentials in URLs are not printed', () => {
    write(
      'throughline.yaml',
      [
        `secrets: ["${SECRET}"]`,
        'servers:',
        '  a: { stdio: run, env: { API_KEY: hush-env } }',
        '  b: { upstream: "https://me:hush-url@x.example/mcp?key=hush-query", headers: { Authorization: hush-header } }',
        '',
      ].join('\n'),
    );
    const text = printSettings(load('serve'));
    expect(text).not.toMatch(/hush/);
    expect(text).not.toContain(SECRET);
    expect(text).toContain('API_KEY: <redacted>');
    expect(text).toContain('https://redacted:redacted@x.example/mcp?redacted');
  });

  it('[CLI-PRINT] what is printed can be used as the file and means the same', () => {
    write('tokens', `alice:${HASH}\n`);
    const line = [
      ...'serve --listen 127.0.0.1:5 --admin off --log memory: --retention 2h --allowed-hosts a,b --drain 1s'.split(
        ' ',
      ),
      ...'--auth-tokens-file tokens --max-running 9 --json-logs --idle-ttl 5m'.split(' '),
      '--stdio',
      'npx -y "a thing"',
    ];
    const first = load(line);
    write('throughline.yaml', printSettings(first));
    const second = load('serve');
    expect({ ...second, layer: null, serverOrigin: null, configFile: null }).toEqual({
      ...first,
      layer: null,
      serverOrigin: null,
      configFile: null,
    });
  });

  it('[CLI-PRINT] the issuers of a file are printed with it', () => {
    mkdirSync(path.join(cwd, 'etc'));
    write('etc/keys.json', JSON.stringify({ keys: [{ kty: 'EC', kid: 'k' }] }));
    write('etc/t.yaml', 'auth: { scopes: [mcp], issuers: [{ issuer: "https://b.example", keysFile: keys.json }] }\n');
    const first = load('serve --config etc/t.yaml');
    write('throughline.yaml', printSettings(first));
    expect(load('serve').gateway).toEqual(first.gateway);
  });

  it('[CLI-PRINT] each value that is no default names where it came from', () => {
    const text = printSettings(load('serve --listen 127.0.0.1:5', { THROUGHLINE_RETENTION: '2h' }));
    expect(text).toContain('listen: 127.0.0.1:5 # --listen\n');
    expect(text).toContain('retention: 2h # THROUGHLINE_RETENTION\n');
    expect(text).toContain('admin: 127.0.0.1:9464\n');
  });
});
