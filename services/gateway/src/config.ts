/** Configuration of the gateway role: one schema, each field with unit, default and meaning. */
import { z } from 'zod';
import { IssuerSchema, PublicUrlSchema, ScopeSchema } from './auth/auth-config.ts';
import { isTrustable } from './client-address.ts';

export { IssuerSchema } from './auth/auth-config.ts';
export type { IssuerConfig } from './auth/auth-config.ts';

const AddressSchema = z.strictObject({
  host: z.string().min(1),
  port: z.int().min(0).max(65535),
});

/** As `Host` has it. What can never match would lock out whom it is meant to let in. */
const HostNameSchema = z
  .string()
  .regex(
    /^(?:\[[0-9a-f:.]+\]|[^\s:/?#@*[\]]+)$/i,
    'must be host names without scheme, port or path, for example mcp.example.com',
  );

/** As browsers send it: for http and https in the form that URL gives it, other schemes by their letters. */
const OriginSchema = z
  .string()
  .refine(
    (text) =>
      text === 'null' ||
      (/^https?:/i.test(text) ? URL.parse(text)?.origin === text : /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]+$/.test(text)),
    { error: 'must be origins as browsers send them, scheme and host alone, for example https://app.example.com' },
  );

/** Far above what any proxy lets be silent. */
const MAX_KEEP_ALIVE_MS = 86_400_000;

export const GatewayConfigSchema = z.strictObject({
  listen: AddressSchema.default({ host: '127.0.0.1', port: 8080 }).describe(
    'Address of the MCP endpoint. Port 0: any free one.',
  ),
  tls: z
    .strictObject({ certFile: z.string().min(1), keyFile: z.string().min(1) })
    .nullable()
    .default(null)
    .describe('Files in PEM by which the MCP endpoint speaks TLS, read again when they change; null: plain HTTP.'),
  admin: AddressSchema.nullable()
    .default({ host: '127.0.0.1', port: 9464 })
    .describe('Address of /livez, /readyz and /metrics; null: none.'),
  servers: z
    .array(z.string())
    .min(1)
    .describe('Names of the MCP servers: each is served at /mcp/<name>, one alone also at /mcp.'),
  secrets: z
    .array(z.instanceof(Uint8Array))
    .min(1)
    .describe('Keys that sign session ids: the first signs, all verify.'),
  tokens: z
    .array(z.strictObject({ principal: z.string().min(1), sha256: z.string().regex(/^[0-9a-f]{64}$/) }))
    .nullable()
    .default(null)
    .describe('Bearer tokens by the SHA-256 of the token; null: none.'),
  issuers: z
    .array(IssuerSchema)
    .default([])
    .describe('Authorization servers whose tokens are taken. With neither these nor tokens nobody is asked for one.'),
  requiredScopes: z.array(ScopeSchema).default([]).describe('Scopes that a token of an issuer must have, all of them.'),
  clockToleranceMs: z
    .int()
    .min(0)
    .max(300_000)
    .default(30_000)
    .describe('Milliseconds by which the clocks of issuers may differ from ours.'),
  expiredStreams: z
    .enum(['end', 'finish-calls', 'keep'])
    .default('finish-calls')
    .describe(
      'Open streams whose token has expired: all end, those of calls after their answer, or none. An ended one can be resumed.',
    ),
  publicUrl: PublicUrlSchema.nullable()
    .default(null)
    .describe('URL under which clients reach this gateway, without /mcp: what tokens and metadata name.'),
  allowedHosts: z
    .array(HostNameSchema)
    .nullable()
    .default(null)
    .describe('Host names accepted in Host; null: loopback names if listening on loopback, else any.'),
  allowedOrigins: z.array(OriginSchema).default([]).describe('Origins accepted besides loopback ones.'),
  trustProxy: z
    .array(
      z.string().refine(isTrustable, {
        error: ({ input }) =>
          `must be addresses or ranges of proxies, such as 10.0.0.5,10.0.0.0/24,fd00::/64, or loopback; ${JSON.stringify(input)} is none`,
      }),
    )
    .default([])
    .describe('Peers whose X-Forwarded-For tells the address of a client: addresses, ranges, `loopback`.'),
  maxBodyBytes: z
    .int()
    .min(1024)
    .default(4 * 1024 * 1024)
    .describe('Largest POST body in bytes.'),
  maxConnections: z.int().min(1).default(10_000).describe('Open SSE connections at most; more get 503.'),
  requestsPerSecondPerPrincipal: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Requests a second of one principal, or of one address where nobody is asked for a token, and twice as many at once; more get 429. Null: 1000 of a principal, any number of an address.',
    ),
  streamsPerPrincipal: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Open SSE connections of one principal, or of one address where nobody is asked for a token; more get 429. Null: 1000 of a principal, any number of an address.',
    ),
  newSessionsPerHourPerPrincipal: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Sessions that one principal may begin in an hour, or one address where nobody is asked for a token; more get 429. Null: 10,000 of a principal, any number of an address.',
    ),
  keepAliveMs: z
    .int()
    .min(100)
    .max(MAX_KEEP_ALIVE_MS)
    .default(15_000)
    .describe('Milliseconds of silence after which a comment is sent on a stream.'),
  retryMs: z
    .int()
    .min(10)
    .default(500)
    .describe('Milliseconds that clients are told to wait before they reconnect, before jitter.'),
  refreshMs: z
    .int()
    .min(100)
    .default(600_000)
    .describe(
      'Milliseconds of silence after which an idle stream gets an id without data, so that its cursor stays ahead of retention.',
    ),
  drainMs: z
    .int()
    .min(0)
    .default(2000)
    .describe('Milliseconds over which connections are closed when the gateway stops.'),
  appendTimeoutMs: z.int().min(100).default(20_000).describe('Milliseconds to wait for the ack of a client message.'),
  maxLifeMs: z
    .int()
    .min(1000)
    .default(7 * 24 * 3600_000)
    .describe('Milliseconds after its creation at which a session ends.'),
  deadAfterMs: z
    .int()
    .min(50)
    .default(4000)
    .describe('Milliseconds without a heartbeat after which a worker counts as gone.'),
  cacheBytes: z
    .int()
    .min(1024)
    .default(64 * 1024 * 1024)
    .describe('Bytes of recent events held in memory, over all partitions.'),
  catchUpReaders: z.int().min(1).default(16).describe('Reads of older events that run at once.'),
});

export type GatewayConfig = z.infer<typeof GatewayConfigSchema>;
