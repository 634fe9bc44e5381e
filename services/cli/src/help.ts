/** `throughline --help` and docs/reference/config.md, made from the option table. */
import { commandOption, COMMAND_OPTION_NAMES, OPERATION_NAMES } from './operate/operations.ts';
import { CONFIG_FILE_OPTION, environmentName, OPTION_GROUPS, OPTION_NAMES, optionRow } from './option-table.ts';
import type { OptionName, OptionRow } from './option-table.ts';

const WIDTH = 100;
const INDENT = '      ';

const COMMANDS = [
  ['serve', 'gateway and worker in one process; what a single machine needs'],
  ['gateway', 'only the HTTP endpoint; any number of them on one log'],
  ['worker', 'only the MCP servers; any number of them on one log'],
  ['topics apply', 'creates the topics of a Kafka log, and sets what is not as it should be; takes nothing away'],
  ['topics show', 'the topics of a Kafka log as they are'],
  ['topics diff', 'what `topics apply` would change; exit code 1 if there is something'],
  ['doctor', 'what is wrong with the log, its topics and its workers, and how to put it right'],
  ['inspect <id>', 'what an event id or a session id names, and whether a resume with it would be taken now'],
  ['tail', 'follows the records of a topic, without what clients and servers say unless --payload asks for it'],
  ['owners', 'whose each partition is, and how much work waits in it'],
  ['epoch show', 'the epoch in force, those before it, and why each began'],
  ['epoch rotate', 'gives up the history: every session ends, and clients start anew'],
  ['config check', 'says whether the configuration can be used, and everything that is wrong with it'],
  ['config print', 'the configuration in force, as YAML, without secrets'],
  ['secret new', 'a fresh secret for signing session ids'],
  ['secret hash', 'reads a bearer token from stdin and prints its SHA-256 for --auth-tokens-file'],
] as const;

export function renderHelp(version: string): string {
  const lines = [
    `throughline ${version}: an MCP server whose sessions survive restarts`,
    '',
    'Usage: throughline <command> [options]',
    '',
    'Commands',
    ...COMMANDS.map(([name, meaning]) => `  ${name.padEnd(13)} ${meaning}`),
    '',
    'With no server configured, the demo server is served. Examples:',
    '  throughline serve --stdio "npx -y @modelcontextprotocol/server-everything stdio"',
    '  throughline serve --module ./my-server.js --listen 127.0.0.1:3000',
    '',
    'Each option can also be set by the environment variable named with it and in throughline.yaml at the place named',
    'with it. Flags win over the environment, the environment over the file. Durations are written 500ms, 30s, 15m, 24h',
    'or 7d; sizes 65536, 512KiB or 4GiB.',
    '',
    'General',
    `  --${CONFIG_FILE_OPTION.name} <${CONFIG_FILE_OPTION.placeholder}>`,
    ...wrap(`${CONFIG_FILE_OPTION.help} Default: ${CONFIG_FILE_OPTION.default}.`),
    `${INDENT}${environmentName(CONFIG_FILE_OPTION.name)}`,
    '  -h, --help',
    `${INDENT}This text.`,
    '  -v, --version',
    `${INDENT}The version.`,
    '',
    "Of the operator's commands alone",
    ...COMMAND_OPTION_NAMES.flatMap((name) => {
      const { placeholder, help, commands } = commandOption(name);
      const of = commands.length === OPERATION_NAMES.length ? 'all' : commands.join(', ');
      return [`  --${name}${placeholder === undefined ? '' : ` <${placeholder}>`}`, ...wrap(`${help} (${of})`)];
    }),
  ];
  for (const group of OPTION_GROUPS) {
    lines.push('', group);
    for (const name of namesOfGroup(group)) {
      const row = optionRow(name);
      lines.push(`  ${row.isFlag === false ? '(no flag)' : formatFlag(name, row)}`);
      lines.push(...wrap(`${row.help}${formatDefault(row)}${formatRoles(row)}`));
      lines.push(`${INDENT}${[environmentName(name), row.yaml].filter((place) => place !== null).join(' · ')}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

export function renderConfigPage(): string {
  const lines = [
    '# Configuration',
    '',
    'Every option can be given in three places: on the command line, in the environment and in a YAML file. Flags win',
    'over the environment, the environment over the file. This page is made from `services/cli/src/option-table.ts`:',
    '`node infra/write-reference.ts` writes it, and a test fails when it has drifted.',
    '',
    `The file is the one of \`--${CONFIG_FILE_OPTION.name}\` or \`${environmentName(CONFIG_FILE_OPTION.name)}\`, by default ${CONFIG_FILE_OPTION.default}.`,
    'Relative paths in it are relative to it. Durations are written `500ms`, `30s`, `15m`, `24h` or `7d`; sizes `65536`,',
    '`512KiB` or `4GiB`; lists are separated by commas, or YAML lists. An empty variable counts as not set. Unknown options,',
    'variables and settings are refused; `throughline config check` names all faults at once, `throughline config print`',
    'prints what is in force.',
  ];
  for (const group of OPTION_GROUPS) {
    lines.push(
      '',
      `## ${group}`,
      '',
      '| option | variable | in the file | default | meaning |',
      '| --- | --- | --- | --- | --- |',
    );
    for (const name of namesOfGroup(group)) {
      const row = optionRow(name);
      const flag = row.isFlag === false ? '–' : `\`${escapeCell(formatFlag(name, row))}\``;
      const yaml = row.yaml === null ? '–' : `\`${row.yaml}\``;
      const standard = row.default === null ? '–' : `\`${row.default}\``;
      lines.push(
        `| ${flag} | \`${environmentName(name)}\` | ${yaml} | ${standard} | ${escapeCell(row.help)}${formatRoles(row)} |`,
      );
    }
  }
  return `${lines.join('\n')}\n${SERVERS_SECTION}`;
}

const SERVERS_SECTION = `
## Several servers

\`servers\` in the file names any number of them. Each is served at \`/mcp/<name>\`; one alone also at \`/mcp\`.

\`\`\`yaml
servers:
  files:
    stdio: npx -y @modelcontextprotocol/server-filesystem /srv/files
  orders:
    module: ./orders.js
    onOwnerLoss: restore
  legacy:
    upstream: https://mcp.example.com/mcp
    headers:
      Authorization: Bearer …
\`\`\`

| setting | meaning |
| --- | --- |
| \`module\`, \`stdio\`, \`upstream\` | One of them: as the options of the same name. |
| \`env\`, \`cwd\` | Extra environment and working directory of a stdio server. |
| \`headers\` | Headers sent to an upstream, for its own credentials. The client's token is never passed on. |
| \`onOwnerLoss\` | As \`--on-owner-loss\`; default \`terminate\`. |
| \`maxSessions\` | As \`--max-sessions\`; default 1000. |
| \`idleTtl\` | As \`--idle-ttl\`, in seconds; default 3600. |
`;

function namesOfGroup(group: (typeof OPTION_GROUPS)[number]): OptionName[] {
  return OPTION_NAMES.filter((name) => optionRow(name).group === group);
}

function formatFlag(name: OptionName, row: OptionRow): string {
  return row.placeholder === undefined ? `--${name}` : `--${name} <${row.placeholder}>`;
}

function formatDefault(row: OptionRow): string {
  return row.default === null || row.kind === 'switch' ? '' : ` Default: ${row.default}.`;
}

function formatRoles(row: OptionRow): string {
  return row.roles === undefined
    ? ''
    : ` (${row.roles.map((user) => (user === 'operate' ? "operator's commands" : user)).join(', ')})`;
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function wrap(text: string): string[] {
  const lines: string[] = [];
  let line = INDENT.trimEnd();
  for (const word of text.split(' ')) {
    if (line.length + word.length + 1 > WIDTH && line.trim() !== '') {
      lines.push(line);
      line = INDENT.trimEnd();
    }
    line = line.trim() === '' ? INDENT + word : `${line} ${word}`;
  }
  lines.push(line);
  return lines;
}
