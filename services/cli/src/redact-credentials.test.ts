import { describe, expect, it } from 'vitest';
import { ConfigError } from './faults.ts';
import { redactCredentials } from './redact-credentials.ts';
import { renderFaults } from './render-faults.ts';

describe('faults as they are shown', () => {
  it.each([
    ['--log "kafka://user:hush@b1:9092,b2"', '--log "kafka://<redacted>@b1:9092,b2"'],
    ['--public-url "https://me:hu/s@h@mcp.example/x"', '--public-url "https://<redacted>@mcp.example/x"'],
    ['https://hush@x and http://b/c', 'https://<redacted>@x and http://b/c'],
    ['--kafka-oauth-url "https://id/t?key=hush"', '--kafka-oauth-url "https://id/t?<redacted>"'],
    ['--log "sqlite:/srv/a@b/log.db"', '--log "sqlite:/srv/a@b/log.db"'],
    ['--listen "0.0.0.0:80"', '--listen "0.0.0.0:80"'],
  ])('[CLI-REDACT] of %s no credentials are left', (text, shown) => {
    expect(redactCredentials(text)).toBe(shown);
    const fault = { where: text, problem: text };
    for (const printed of [renderFaults([fault], 'serve'), new ConfigError([fault]).message])
      expect(printed).toContain(`${shown}: ${shown}`);
  });
});
