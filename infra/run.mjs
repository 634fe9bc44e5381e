// What every npm script of this project calls: installs what is missing, then runs the command on Node 24.
// Plain JavaScript without dependencies: it runs on the system's Node (20 or later) before anything is installed.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { ensureInstalled, nodeBinary } from './install.mjs';

const root = path.resolve(fileURLToPath(new URL('..', import.meta.url)));

const COMMANDS = {
  start: ['services/cli/src/main.ts'],
  test: ['infra/lanes/change.ts'],
  deep: ['infra/lanes/deep.ts'],
  check: ['infra/lanes/check.ts'],
  simulate: ['tests/simulation/simulate.ts'],
  chaos: ['tests/resilience/chaos/chaos.ts'],
  interop: ['tests/interop/interop.ts'],
  'demo:failover': ['examples/failover/demo.ts'],
  'demo:human': ['examples/human/demo.ts'],
  'demo:rolling-deploy': ['examples/rolling-deploy/demo.ts'],
  'demo:elicitation': ['examples/elicitation/demo.ts'],
  'demo:connect': ['examples/connect/demo.ts'],
  'demo:browser': ['examples/browser/demo.ts'],
  bench: ['benchmarks/run.ts'],
  packages: ['infra/packages/pack.ts'],
  kafka: ['infra/kafka/run-kafka.ts'],
  containers: ['infra/docker/run-containers.ts'],
  'compose:secret': ['infra/compose/make-secret.ts'],
  'compose:drive': ['infra/compose/drive.ts'],
  security: ['infra/gates/security.ts'],
};

/** They take no options, and say for `--help` what they do: another one that is given was meant for something else. */
const WITHOUT_OPTIONS = {
  check: 'Runs the gates alone: types, lint, formats, dependencies, unused code and the rules of SPEC.md.',
  security: 'Looks for secrets in what would be committed, and for known holes in what is shipped.',
  'demo:failover': 'A tool call goes on while the gateway that streams it is killed.',
  'demo:human': 'A tool asks a person, the worker that waits is killed, and the person is asked once.',
  'demo:rolling-deploy':
    'Every gateway and worker is replaced under a running tool, and each step of its progress comes once.',
  'demo:elicitation': 'A tool asks a person, the gateway that streams is killed, and the answer goes over another one.',
  'demo:connect': 'A stdio client behind "throughline connect" does not notice that gateways are replaced.',
  'demo:browser': 'Serves a page that shows what was replayed and what is live, with a button that kills the gateway.',
  'compose:secret': 'Makes the secret that signs session ids for docker compose, once.',
  'compose:drive':
    'Brings compose up, kills a gateway and a broker in the middle of a call, and looks at what the client got.',
};

const OLDEST_NODE = 20;

function run() {
  const [command = '', ...rest] = process.argv.slice(2);
  const target = COMMANDS[command];
  if (target === undefined) {
    process.stderr.write(`Throughline: unknown command "${command}". Known: ${Object.keys(COMMANDS).join(', ')}.\n`);
    process.exit(2);
  }
  const does = WITHOUT_OPTIONS[command];
  if (does !== undefined && ['--help', '-h'].includes(rest[0])) {
    process.stdout.write(`Usage: npm run ${command}\n${does}\n`);
    process.exit(0);
  }
  if (does !== undefined && rest.length > 0) {
    process.stderr.write(`npm run ${command} takes no options: ${rest.join(' ')}\n`);
    process.exit(2);
  }
  if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
    process.stderr.write(
      `Throughline: Node ${process.versions.node} is too old. Install Node ${OLDEST_NODE} or later.\n`,
    );
    process.exit(2);
  }
  const failed = ensureInstalled(root);
  if (failed !== 0) process.exit(failed);
  const [file, ...args] = target;
  if (!existsSync(path.join(root, file))) {
    process.stderr.write(`Throughline: ${file} does not exist, so "${command}" cannot run.\n`);
    process.exit(1);
  }
  // `npm start` serves; `npm start -- config check` and the like run that command.
  const words = command === 'start' && (rest[0] === undefined || rest[0].startsWith('-')) ? ['serve', ...rest] : rest;
  start(path.join(root, file), [...args, ...words]);
}

/** Lends the child our streams; signals go in, the exit code comes out. */
function start(file, args) {
  const child = spawn(nodeBinary(root), ['--conditions=@throughline/source', file, ...args], {
    stdio: 'inherit',
    env: { ...process.env, PATH: [path.join(root, 'node_modules', '.bin'), process.env.PATH].join(path.delimiter) },
  });
  const forward = (signal) => {
    child.kill(signal);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, forward);
  child.on('error', (error) => {
    process.stderr.write(`Throughline: Node 24 of node_modules does not start: ${error.message}\n`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

run();
