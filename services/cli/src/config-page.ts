/** docs/reference/config.md, made from the option table. */
import { formatFlag, formatRoles, namesOfGroup } from './option-text.ts';
import { CONFIG_FILE_OPTION, environmentName, OPTION_GROUPS, optionRow } from './option-table.ts';

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
| \`env\`, \`cwd\` | Extra environment and working directory of a stdio server. Secrets belong in \`env\`, whose values are never printed; a command is shown as it stands, by \`config print\` and by every list of processes. |
| \`headers\` | Headers sent to an upstream, for its own credentials. The client's token is never passed on. |
| \`onOwnerLoss\` | As \`--on-owner-loss\`; default \`terminate\`. |
| \`maxSessions\` | As \`--max-sessions\`; default 1000. |
| \`idleTtl\` | As \`--idle-ttl\`, in seconds; default 3600. |
`;

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|');
}
