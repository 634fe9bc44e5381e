// Who may depend on whom: protocol <- log, history <- tail <- services/{gateway,worker} <- services/cli.
// When a rule hurts, change the rule and write an ADR; there are no inline exceptions.
const rule = (name, from, to, comment) => ({
  name,
  severity: 'error',
  comment,
  from: typeof from === 'string' ? { path: from } : from,
  to,
});

/** Code that tests are made of; it may use what production may not. */
const TESTS =
  '(\\.test\\.ts$|\\.test-d\\.ts$|/testing/|^tests/|^examples/|^benchmarks/|^fixtures/|^infra/|^services/cli/scripts/|^libs/testkit/|^libs/log/src/conformance/)';
const IO =
  '^(node:)?(fs|net|http|http2|https|tls|dgram|dns|child_process|worker_threads|cluster|sqlite|timers|process|os|stream|readline|vm|inspector)(/|$)';

module.exports = {
  forbidden: [
    rule('no-circular', '.*', { circular: true }, 'a cycle hides which module owns the idea'),
    rule(
      'protocol-is-a-leaf',
      { path: '^libs/protocol/src', pathNot: TESTS },
      { path: '^(libs/(?!protocol/)|services/)' },
      'wire formats depend on nothing of ours',
    ),
    rule(
      'protocol-does-no-io',
      { path: '^libs/protocol/src', pathNot: TESTS },
      { path: IO },
      'wire formats run in browsers',
    ),
    rule(
      'history-is-pure',
      { path: '^libs/history/src', pathNot: TESTS },
      { path: `^(libs/(?!(protocol|history)/)|services/)|${IO}` },
      'decisions do no I/O and know no driver',
    ),
    rule(
      'log-knows-only-protocol',
      { path: '^libs/log/src', pathNot: TESTS },
      { path: '^libs/(?!(protocol|log)/)' },
      'the log stores records, whatever they mean',
    ),
    rule(
      'tail-is-below-the-services',
      { path: '^libs/tail/src', pathNot: TESTS },
      { path: '^libs/(?!(protocol|log|history|tail)/)' },
      'the tail knows the log and the history only',
    ),
    rule(
      'what-users-embed-knows-libs-only',
      { path: '^libs/(event-store|producer)/src', pathNot: TESTS },
      { path: '^libs/(?!(protocol|log|history|tail|$1)/)' },
      'what users install in their own processes knows the log and the history only',
    ),
    rule(
      'client-needs-protocol-only',
      { path: '^libs/client/src', pathNot: TESTS },
      { path: '^(libs/(?!(protocol|client)/)|services/)' },
      'what users install in their own programs stays small',
    ),
    rule('libs-never-import-services', '^libs/', { path: '^services/' }, 'libs are reusable'),
    rule(
      'telemetry-only-in-services',
      { path: '^libs/(?!telemetry/)', pathNot: TESTS },
      { path: '^libs/telemetry/' },
      'libs take callbacks; what is counted and logged is decided in services',
    ),
    rule(
      'no-service-to-service',
      { path: '^services/(?!cli/)([^/]+)/', pathNot: TESTS },
      { path: '^services/', pathNot: '^services/$1/' },
      'gateway and worker meet in the log only',
    ),
    rule(
      'drivers-only-in-cli',
      { path: '^(libs/(?!log/)|services/(?!cli/))', pathNot: TESTS },
      { path: '^libs/log/src/(kafka|sqlite|memory)/' },
      'one composition root chooses the driver',
    ),
    rule(
      'kafkajs-only-in-its-adapter',
      '^(libs|services)/(?!log/src/kafka/)',
      { path: 'node_modules/kafkajs' },
      'the client is replaceable',
    ),
    rule(
      'sqlite-only-in-its-adapter',
      { path: '^(libs|services)/(?!log/src/sqlite/)', pathNot: TESTS },
      { path: '^(node:)?sqlite$' },
      'the database is replaceable',
    ),
    rule(
      'mcp-sdk-only-in-hosts',
      {
        path: '^(libs/(?!client/)|services/)',
        pathNot: `^services/(worker/src/(host|demo-server)[/.]|cli/src/connect/login/)|${TESTS}`,
      },
      { path: 'node_modules/@modelcontextprotocol/' },
      'the wire passes through unchanged; only hosts, clients and the login of connect know the SDK',
    ),
    rule(
      'no-testkit-in-production',
      { path: '^(libs/(?!testkit/)|services/)', pathNot: TESTS },
      { path: '^libs/testkit/' },
      'test code stays in tests',
    ),
    rule(
      'no-test-in-production',
      { path: '^(libs|services)/', pathNot: TESTS },
      { path: '\\.test\\.ts$|^tests/|^libs/log/src/conformance/' },
      'test code stays in tests',
    ),
    rule(
      'no-deep-imports',
      '^(libs|services)/([^/]+)/',
      {
        path: '^(libs|services)/[^/]+/src/',
        pathNot: '^$1/$2/',
        // By the name of a package, an import resolves over its exports map; a relative path goes around it.
        dependencyTypes: ['local'],
        dependencyTypesNot: ['aliased-workspace', 'npm'],
      },
      'import packages and their subpath exports by name',
    ),
    rule(
      'no-undeclared-dependency',
      // Tests use what the root declares. Packages of this workspace are checked by knip.
      { path: '^(libs|services)/', pathNot: TESTS },
      { dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'unknown'], pathNot: '^(node:)' },
      'declare what you import',
    ),
    rule('no-unresolvable', '.*', { couldNotResolve: true }, 'an import must lead somewhere'),
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.base.json' },
    tsPreCompilationDeps: true,
    combinedDependencies: false,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)dist/' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['@throughline/source', 'import', 'node', 'default', 'types'],
      extensions: ['.ts', '.js', '.json'],
    },
  },
};
