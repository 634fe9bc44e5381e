import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const require = createRequire(import.meta.url);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PACKAGES = [
  'libs/protocol',
  'libs/log',
  'libs/history',
  'libs/tail',
  'libs/client',
  'libs/telemetry',
  'libs/testkit',
];
const SERVICES = ['services/gateway', 'services/worker', 'services/cli'];
const FOREIGN = ['kafkajs', '@modelcontextprotocol/sdk', 'undeclared'];

/** Allowed, each next to a rule that it must not break. */
const CLEAN: Record<string, string> = {
  'libs/log/src/open-view.ts': "import '@throughline/protocol';",
  'libs/log/src/kafka/index.ts': "import 'kafkajs';",
  'libs/log/src/sqlite/index.ts': "import 'node:sqlite'; import 'node:worker_threads';",
  'libs/history/src/fold.ts': "import '@throughline/protocol'; import 'node:crypto';",
  // Half of the cycle that is planted below; alone it is none.
  'libs/tail/src/cycle-b.ts': "import type { here } from './cycle-a.ts';",
  'libs/tail/src/cycle-a.ts': '',
  'libs/tail/src/tail.ts': "import '@throughline/log'; import '@throughline/history';",
  'libs/event-store/src/store.ts': "import '@throughline/tail'; import '@throughline/history';",
  'libs/client/src/client.ts': "import '@throughline/protocol'; import '@modelcontextprotocol/sdk';",
  'services/gateway/src/post.ts': "import '@throughline/tail'; import '@throughline/telemetry'; import 'node:http';",
  'services/gateway/src/post.test.ts': "import '@throughline/log/memory'; import '@throughline/testkit';",
  'services/worker/src/host/module-host.ts': "import '@modelcontextprotocol/sdk';",
  'services/cli/src/parts.ts':
    "import '@throughline/log/sqlite'; import '@throughline/gateway'; import '@throughline/worker';",
  'tests/e2e/kill.ts': "import '@throughline/testkit'; import '@modelcontextprotocol/sdk';",
};

/** Refused: the rule, and a file that breaks it. */
const PLANTED: readonly (readonly [rule: string, file: string, text: string])[] = [
  ['no-circular', 'libs/tail/src/cycle-a.ts', "import './cycle-b.ts';"],
  ['protocol-is-a-leaf', 'libs/protocol/src/leaf.ts', "import '@throughline/history';"],
  ['protocol-does-no-io', 'libs/protocol/src/io.ts', "import 'node:fs';"],
  ['history-is-pure', 'libs/history/src/impure.ts', "import '@throughline/log';"],
  ['history-is-pure', 'libs/history/src/impure-io.ts', "import 'node:timers/promises';"],
  ['log-knows-only-protocol', 'libs/log/src/knows.ts', "import '@throughline/history';"],
  ['tail-is-below-the-services', 'libs/tail/src/above.ts', "import '@throughline/client';"],
  ['what-users-embed-knows-libs-only', 'libs/event-store/src/beside.ts', "import '@throughline/client';"],
  ['what-users-embed-knows-libs-only', 'libs/producer/src/beside.ts', "import '@throughline/client';"],
  ['client-needs-protocol-only', 'libs/client/src/heavy.ts', "import '@throughline/log';"],
  ['libs-never-import-services', 'libs/telemetry/src/up.ts', "import '@throughline/gateway';"],
  ['telemetry-only-in-services', 'libs/log/src/counted.ts', "import '@throughline/telemetry';"],
  ['no-service-to-service', 'services/gateway/src/across.ts', "import '@throughline/worker';"],
  ['no-service-to-service', 'services/worker/src/upward.ts', "import '../../cli/src/parts.ts';"],
  ['drivers-only-in-cli', 'services/worker/src/driver.ts', "import '@throughline/log/sqlite';"],
  ['drivers-only-in-cli', 'libs/tail/src/driver.ts', "import '@throughline/log/memory';"],
  ['kafkajs-only-in-its-adapter', 'services/cli/src/kafka.ts', "import 'kafkajs';"],
  ['sqlite-only-in-its-adapter', 'services/cli/src/database.ts', "import 'node:sqlite';"],
  ['mcp-sdk-only-in-hosts', 'services/gateway/src/sdk.ts', "import '@modelcontextprotocol/sdk';"],
  ['mcp-sdk-only-in-hosts', 'services/worker/src/settle/sdk.ts', "import '@modelcontextprotocol/sdk';"],
  ['no-testkit-in-production', 'services/gateway/src/kit.ts', "import '@throughline/testkit';"],
  ['no-test-in-production', 'services/gateway/src/uses-test.ts', "import './post.test.ts';"],
  ['no-deep-imports', 'services/gateway/src/deep.ts', "import '../../../libs/log/src/open-view.ts';"],
  ['no-undeclared-dependency', 'services/gateway/src/undeclared.ts', "import 'undeclared';"],
  ['no-unresolvable', 'services/gateway/src/nowhere.ts', "import './nowhere-at-all.ts';"],
];

let folder: string;

function write(file: string, text: string): void {
  mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
  writeFileSync(path.join(folder, file), `${text}\nexport const here = true;\n`);
}

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'throughline-rules-'));
  cpSync(path.join(ROOT, 'tsconfig.base.json'), path.join(folder, 'tsconfig.base.json'));
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module","workspaces":["libs/*","services/*"]}');
  mkdirSync(path.join(folder, 'node_modules/@throughline'), { recursive: true });
  for (const place of [...PACKAGES, ...SERVICES]) {
    const name = `@throughline/${path.basename(place)}`;
    const exports = { '.': './src/index.ts', './memory': './src/memory/index.ts', './sqlite': './src/sqlite/index.ts' };
    write(`${place}/src/index.ts`, '');
    const dependencies = { kafkajs: '1', '@modelcontextprotocol/sdk': '1' };
    writeFileSync(
      path.join(folder, place, 'package.json'),
      JSON.stringify({ name, type: 'module', exports, dependencies }),
    );
    symlinkSync(path.join('../..', place), path.join(folder, 'node_modules', name));
  }
  write('libs/log/src/memory/index.ts', '');
  for (const name of FOREIGN) {
    const place = path.join(folder, 'node_modules', name);
    mkdirSync(place, { recursive: true });
    writeFileSync(path.join(place, 'package.json'), JSON.stringify({ name, version: '1.0.0', main: 'index.js' }));
    writeFileSync(path.join(place, 'index.js'), '');
  }
  for (const [file, text] of Object.entries(CLEAN)) write(file, text);
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

interface Violation {
  readonly from: string;
  readonly rule: { readonly name: string };
}

async function cruise(): Promise<string[]> {
  const command = [
    path.join(ROOT, 'node_modules/.bin/depcruise'),
    '--config',
    path.join(ROOT, '.dependency-cruiser.cjs'),
    '--output-type',
    'json',
    'libs',
    'services',
    'tests',
  ];
  const output = await new Promise<string>((resolve) => {
    // Its exit code is the number of violations; the report says which.
    execFile(process.execPath, command, { cwd: folder, maxBuffer: 64 * 1024 * 1024 }, (_error, stdout) =>
      resolve(stdout),
    );
  });
  const { summary } = JSON.parse(output) as { summary: { violations: readonly Violation[] } };
  return summary.violations.map(({ rule, from }) => `${rule.name}: ${from}`).sort();
}

describe('.dependency-cruiser.cjs', () => {
  it('[CLI-GATE-DEPS] what the layout allows breaks no rule', async () => {
    expect(await cruise()).toEqual([]);
  });

  it('[CLI-GATE-DEPS] a violation planted for each rule is refused by that rule', async () => {
    for (const [, file, text] of PLANTED) write(file, text);
    const violations = await cruise();
    for (const [rule, file] of PLANTED) expect(violations, `${rule}: ${file}`).toContain(`${rule}: ${file}`);
    const config = require(path.join(ROOT, '.dependency-cruiser.cjs')) as { forbidden: readonly { name: string }[] };
    const planted = new Set(PLANTED.map(([rule]) => rule));
    expect([...planted].sort()).toEqual(config.forbidden.map(({ name }) => name).sort());
    const files = new Set(PLANTED.map(([, file]) => file));
    expect(violations.filter((violation) => !files.has(violation.split(': ')[1] ?? ''))).toEqual([]);
  });
});
