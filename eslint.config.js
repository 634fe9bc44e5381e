// What a machine can check of the style guide. Each message names what to do instead.
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

const TESTS = [
  '**/*.test.ts',
  '**/*.test-d.ts',
  'tests/**',
  'libs/testkit/**',
  'libs/log/src/conformance/**',
  '**/src/testing/**',
  '**/src/host/testing/**',
  'examples/**',
  'benchmarks/**',
];
/** Code that must run under simulation: time, chance and settings come as arguments. */
const DOMAIN = ['libs/{protocol,history,tail,event-store,producer}/src/**', 'services/{gateway,worker}/src/**'];

const SYNTAX = [
  { selector: 'ExportAllDeclaration', message: 'Name what is exported, so that the surface is seen in one place.' },
  { selector: 'ExportDefaultDeclaration', message: 'Use a named export.' },
  {
    selector:
      'IfStatement > .test CallExpression[callee.property.name=/^(includes|startsWith|endsWith|match)$/][callee.object.property.name="message"]',
    message: 'Branch on `code`, never on the text of a message.',
  },
  {
    selector:
      'IfStatement > BinaryExpression.test[operator=/^[!=]==$/] > MemberExpression[property.name="message"][object.name=/^(e|err|error|reason|cause)$/]',
    message: 'Branch on `code`, never on the text of a message.',
  },
];

const CLOCK = [
  {
    selector: 'CallExpression[callee.object.name="Date"][callee.property.name="now"]',
    message: 'Take a Clock as an argument.',
  },
  { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', message: 'Take a Clock as an argument.' },
  {
    selector: 'CallExpression[callee.object.name="Math"][callee.property.name="random"]',
    message: 'Take a Random as an argument.',
  },
  {
    selector: 'CallExpression[callee.object.name="performance"][callee.property.name="now"]',
    message: 'Take a Clock as an argument.',
  },
  {
    selector: 'MemberExpression[object.name="process"][property.name="env"]',
    message: 'Configuration is read once, in services/cli.',
  },
  {
    selector: 'CallExpression[callee.name=/^set(Timeout|Interval|Immediate)$/]',
    message: 'Use clock.setTimer, so that simulation decides when it fires.',
  },
];

export default defineConfig(
  globalIgnores(['**/dist/**', '**/node_modules/**', 'coverage/**', '.turbo/**', 'infra/gates/fixtures/**']),
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-console': 'error',
      'no-param-reassign': 'error',
      'no-restricted-syntax': ['error', ...SYNTAX],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidOperator: true },
      ],
      // `async` without `await` turns a throw into a rejection, which is what a port promises.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
      // TypeScript keeps a narrowing across `await`, so this rule condemns the second look at `signal.aborted` that matters.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      // Ports are objects of closures, written with method signatures; the rule takes each of them for a class.
      '@typescript-eslint/unbound-method': 'off',
    },
  },
  {
    files: DOMAIN,
    ignores: [
      ...TESTS,
      'services/worker/src/host/**',
      'services/worker/src/demo-server/**',
      'services/worker/src/demo-server.ts',
    ],
    rules: { 'no-restricted-syntax': ['error', ...SYNTAX, ...CLOCK] },
  },
  {
    // Modules that a worker or a tool loads by their default export, and declarations of others that have one.
    files: [
      '**/demo-server/**',
      '**/demo-server.ts',
      '**/*.config.ts',
      '**/*-internals.d.ts',
      '**/examples/**',
      '**/fixtures/**',
      'tests/**',
      'benchmarks/peers/bench-server.ts',
    ],
    rules: {
      'no-restricted-syntax': ['error', ...SYNTAX.filter(({ selector }) => selector !== 'ExportDefaultDeclaration')],
    },
  },
  {
    files: TESTS,
    rules: {
      '@typescript-eslint/explicit-module-boundary-types': 'off',
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/restrict-template-expressions': 'off',
      // Clients and servers of former revisions are tested through what their SDKs deprecate by now.
      '@typescript-eslint/no-deprecated': 'off',
      '@typescript-eslint/no-base-to-string': 'off',
      '@typescript-eslint/no-meaningless-void-operator': 'off',
      '@typescript-eslint/no-misused-spread': 'off',
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
    },
  },
  {
    // What a person starts and reads in a terminal.
    files: ['examples/**', 'benchmarks/**'],
    rules: { 'no-console': 'off' },
  },
);
