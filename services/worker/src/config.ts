/** Configuration of the worker role: one schema, each field with unit, default and meaning. */
import { z } from 'zod';

export const ServerSchema = z
  .strictObject({
    module: z
      .string()
      .min(1)
      .optional()
      .describe('Path or package of an ES module whose default export is (ctx) => McpServer.'),
    stdio: z.string().min(1).optional().describe('Command line of a stdio MCP server; one process a session.'),
    upstream: z
      .url({ protocol: /^https?$/, error: 'must be an http or https URL, such as https://mcp.example.com/mcp' })
      .optional()
      .describe('URL of an existing Streamable HTTP MCP server.'),
    env: z.record(z.string(), z.string()).optional().describe('Extra environment of a stdio server.'),
    cwd: z.string().optional().describe('Working directory of a stdio server.'),
    headers: z
      .record(z.string(), z.string())
      .optional()
      .describe('Headers sent to an upstream, for its own credentials.'),
    onOwnerLoss: z
      .enum(['terminate', 'restore'])
      .default('terminate')
      .describe(
        'What happens to a session when its worker is gone: end it with a reason, or rebuild it on another worker (for servers without other session state).',
      ),
    maxSessions: z.int().min(1).max(1_000_000).default(1000).describe('Server instances a worker hosts at most.'),
    idleTtl: z.int().min(1).default(3600).describe('Seconds after which a session without traffic ends.'),
  })
  .refine(
    (server) => [server.module, server.stdio, server.upstream].filter((kind) => kind !== undefined).length === 1,
    {
      error: 'exactly one of module, stdio, upstream is needed',
    },
  );

export type ServerConfig = z.infer<typeof ServerSchema>;

export const ServerNameSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'a server name is 1 to 63 lower-case letters, digits and hyphens');

export const WorkerConfigSchema = z.strictObject({
  servers: z.record(ServerNameSchema, ServerSchema).describe('The MCP servers, by name.'),
  drainMs: z
    .int()
    .min(0)
    .default(10_000)
    .describe(
      'Milliseconds that running calls get to finish when the worker stops, or their partition goes to another.',
    ),
  checkpointMs: z.int().min(10).default(2000).describe('Milliseconds between checkpoints of a busy partition.'),
  heartbeatMs: z.int().min(10).default(1000).describe('Milliseconds between heartbeats of the worker.'),
  deadAfterMs: z
    .int()
    .min(50)
    .default(4000)
    .describe('Milliseconds without a heartbeat after which a worker counts as gone.'),
  maxSessionsPerPrincipal: z
    .int()
    .min(1)
    .default(10_000)
    .describe(
      'Server instances of one principal in this worker, over all servers; without authentication all clients are one.',
    ),
  maxRunning: z.int().min(1).default(2048).describe('Requests that run at once in this worker.'),
  maxRunningPerPrincipal: z
    .int()
    .min(1)
    .default(2048)
    .describe('Requests of one principal that run at once in this worker; without authentication all clients are one.'),
  maxRunningPerSession: z.int().min(1).default(32).describe('Requests that run at once in one session.'),
  maxQueuedPerSession: z
    .int()
    .min(1)
    .default(256)
    .describe('Requests that wait in one session; more are answered with an error.'),
  unloadAfterMs: z
    .int()
    .min(100)
    .default(300_000)
    .describe('Milliseconds after which an idle session that can be restored is unloaded.'),
  appendTimeoutMs: z
    .int()
    .min(100)
    .default(20_000)
    .describe('Milliseconds that a refused append is tried again before the partition is given up.'),
  maxLifeMs: z
    .int()
    .min(1000)
    .default(7 * 24 * 3600_000)
    .describe('Milliseconds after its creation at which a session ends.'),
});

export type WorkerConfig = z.infer<typeof WorkerConfigSchema>;
