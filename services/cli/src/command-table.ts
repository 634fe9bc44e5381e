/** Every command, in one place: what it does, what it takes, an example, its exit codes. Help and docs/reference/commands.md are made from this table. */
import type { OperationName } from './operate/operations.ts';
import { OPTION_NAMES, optionRow } from './option-table.ts';
import type { OptionName, OptionUser, Role } from './option-table.ts';

export type CommandName =
  Role | OperationName | 'connect' | 'config check' | 'config print' | 'secret new' | 'secret hash' | 'help';

export interface CommandRow {
  /** What stands behind the name. */
  readonly words?: string;
  readonly meaning: string;
  /** As whom it reads the configuration; null: it reads none. */
  readonly user: OptionUser | null;
  /** Options of the configuration that change what it does. */
  readonly options: readonly OptionName[];
  readonly examples: readonly string[];
  readonly exits: readonly (readonly [code: string, meaning: string])[];
}

const WRONG = ['2', 'the command line or the configuration is wrong; nothing was done'] as const;
const FAILED = ['1', 'it failed, which stderr says'] as const;
const STOPPED = ['130', 'Ctrl-C'] as const;

const REACH: readonly OptionName[] = OPTION_NAMES.filter((name) => {
  const { group, roles } = optionRow(name);
  return name === 'log' || group === 'Output' || (group === 'Kafka' && roles === undefined);
});
const PLAN = ['partitions', 'replication', 'retention', 'inbound-retention', 'max-message'] as const;

function ofRole(role: Role): Pick<CommandRow, 'user' | 'options' | 'exits'> {
  return {
    user: role,
    options: OPTION_NAMES.filter((name) => optionRow(name).roles?.includes(role) ?? true),
    exits: [
      ['0', 'SIGINT or SIGTERM stopped it in order'],
      ['1', 'it did not start, or did not stop in order; stderr says why'],
      ['2', 'the command line or the configuration is wrong; nothing was started'],
      ['130, 143', 'a second signal ended it at once'],
    ],
  };
}

function ofOperator(...more: readonly OptionName[]): Pick<CommandRow, 'user' | 'options'> {
  return { user: 'operate', options: OPTION_NAMES.filter((name) => REACH.includes(name) || more.includes(name)) };
}

const KAFKA = '--log kafka://kafka.example:9092';

export const COMMANDS: { readonly [C in CommandName]: CommandRow } = {
  serve: {
    meaning: 'gateway and worker in one process; what a single machine needs',
    ...ofRole('serve'),
    examples: [
      'throughline serve --stdio "npx -y @modelcontextprotocol/server-everything stdio"',
      'throughline serve --module ./my-server.js --listen 127.0.0.1:3000',
    ],
  },
  gateway: {
    meaning: 'only the HTTP endpoint; any number of them on one log',
    ...ofRole('gateway'),
    examples: [`throughline gateway ${KAFKA} --secrets-file throughline.secrets`],
  },
  worker: {
    meaning: 'only the MCP servers; any number of them on one log',
    ...ofRole('worker'),
    examples: [`throughline worker ${KAFKA} --module ./my-server.js`],
  },
  connect: {
    words: '<url>',
    meaning: 'the command of a stdio client: passes its messages to a server over HTTP, and keeps its place there',
    user: null,
    options: [],
    examples: [
      'throughline connect https://mcp.example.com/mcp --place my-editor --token-file ~/.config/mcp-token',
      'throughline connect https://mcp.example.com/mcp --header "X-Tenant: acme"',
      'throughline connect https://mcp.example.com/mcp --login now --open',
    ],
    exits: [
      [
        '0',
        'the client closed stdin, or SIGINT or SIGTERM stopped it; with `--login now`: there is a login, or none is wanted',
      ],
      ['1', 'the client does not read any more, or an unexpected failure; stderr says which'],
      ['2', 'the command line, or a file that it names, is wrong; nothing was sent'],
      ['3', 'no session could be begun: the server was out of reach, or refused it; stderr says why'],
      ['4', 'the server wants a login, and there is none: nobody came, or it was refused; stderr says what to do'],
      ['130, 143', 'a second signal ended it at once'],
    ],
  },
  'topics apply': {
    meaning: 'creates the topics of a Kafka log, and sets what is not as it should be; takes nothing away',
    ...ofOperator(...PLAN),
    examples: [`throughline topics apply ${KAFKA} --partitions 12 --retention 48h`],
    exits: [['0', 'the topics are as they should be'], ['1', 'it refused some changes, or failed'], WRONG, STOPPED],
  },
  'topics show': {
    meaning: 'the topics of a Kafka log as they are; exit code 1 if one is missing',
    ...ofOperator(),
    examples: [`throughline topics show ${KAFKA}`],
    exits: [['0', 'all topics are there'], ['1', 'a topic is missing, or it failed'], WRONG, STOPPED],
  },
  'topics diff': {
    meaning: 'what `topics apply` would change; exit code 1 if there is something',
    ...ofOperator(...PLAN),
    examples: [`throughline topics diff ${KAFKA}`],
    exits: [['0', 'nothing differs'], ['1', 'something differs, or it failed'], WRONG, STOPPED],
  },
  doctor: {
    meaning: 'what is wrong with the log, its topics and its workers, and how to put it right',
    ...ofOperator(...PLAN, 'lease', 'max-size', 'max-body', 'dead-after', 'secrets', 'secrets-file'),
    examples: [`throughline doctor ${KAFKA}`],
    exits: [['0', 'no check failed; there may be warnings'], ['1', 'a check failed'], WRONG, STOPPED],
  },
  inspect: {
    words: '<id>',
    meaning: 'what an event id or a session id names, and whether a resume with it would be taken now',
    ...ofOperator('secrets', 'secrets-file', 'auth-tokens-file', 'max-life', 'dead-after'),
    examples: [`throughline inspect "$EVENT_ID" --session "$SESSION_ID" ${KAFKA}`],
    exits: [
      ['0', 'it said what the id names, whatever that is'],
      FAILED,
      ['2', 'what was given is no id, or the command line or the configuration is wrong'],
      STOPPED,
    ],
  },
  tail: {
    meaning: 'follows the records of a topic, without what clients and servers say unless --payload asks for it',
    ...ofOperator(),
    examples: [`throughline tail --topic inbound --from start --once ${KAFKA}`],
    exits: [['0', 'Ctrl-C, or what --count and --once end with'], FAILED, WRONG],
  },
  owners: {
    meaning: 'whose each partition is, and how much work waits in it',
    ...ofOperator('dead-after'),
    examples: [`throughline owners ${KAFKA}`],
    exits: [
      ['0', 'it said whose each is, whatever that is'],
      ['1', 'a partition could not be read, or it failed'],
      WRONG,
      STOPPED,
    ],
  },
  'epoch show': {
    meaning: 'the epoch in force, those before it, and why each began',
    ...ofOperator(),
    examples: [`throughline epoch show ${KAFKA}`],
    exits: [['0', 'done'], FAILED, WRONG, STOPPED],
  },
  'epoch rotate': {
    meaning: 'gives up the history: every session ends, and clients start anew',
    ...ofOperator(),
    examples: [`throughline epoch rotate --reason "restored from a backup" --yes ${KAFKA}`],
    exits: [
      ['0', 'the new epoch is in force'],
      ['1', 'nothing was done as --yes is missing, another process was first, or it failed'],
      WRONG,
      STOPPED,
    ],
  },
  'config check': {
    meaning: 'says whether the configuration can be used, and everything that is wrong with it',
    user: 'serve',
    options: [],
    examples: ['throughline config check --config throughline.yaml'],
    exits: [['0', 'it can be used'], WRONG],
  },
  'config print': {
    meaning: 'the configuration in force, as YAML, without secrets',
    user: 'serve',
    options: [],
    examples: ['throughline config print --config throughline.yaml'],
    exits: [['0', 'done'], WRONG],
  },
  'secret new': {
    meaning: 'a fresh secret for signing session ids',
    user: null,
    options: [],
    examples: ['throughline secret new > throughline.secrets'],
    exits: [['0', 'done'], WRONG],
  },
  'secret hash': {
    meaning: 'reads a bearer token from stdin and prints its SHA-256 for --auth-tokens-file',
    user: null,
    options: [],
    examples: ['printf %s "$TOKEN" | throughline secret hash'],
    exits: [['0', 'done'], WRONG],
  },
  help: {
    words: '[command]',
    meaning: 'the options, an example and the exit codes of a command; `throughline <command> --help` says the same',
    user: null,
    options: [],
    examples: ['throughline help inspect'],
    exits: [
      ['0', 'done'],
      ['2', 'there is no such command'],
    ],
  },
};

export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly CommandName[];

export function isCommandName(text: string): text is CommandName {
  return Object.hasOwn(COMMANDS, text);
}

/** `topics` for `topics apply`, `topics show` and `topics diff`; empty: no command begins with the word. */
export function commandsOfGroup(word: string): readonly CommandName[] {
  return COMMAND_NAMES.filter((name) => name.startsWith(`${word} `));
}
