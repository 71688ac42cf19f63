import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../support/gateway.js';

/**
 * The specification's section on the command line, row by row: every command with its purpose,
 * every flag with its type and default. e2e/server-flags, e2e/agent-flags and the tests of the
 * commands test the effects of flags.
 */
const specification = suite('cli/specification');

/** Commands and their purposes in the specification's words. */
const commands: readonly (readonly [command: string, purpose: string])[] = [
  ['agent', 'start the data plane'],
  ['bootstrap', 'create a new user account'],
  ['completion', 'generate a shell autocompletion script'],
  ['config', 'print the computed configuration'],
  ['feature-flags', 'print the list of feature flags'],
  ['help', 'help about any command'],
  ['migrate', 'database migrations'],
  ['openapi', 'extract webhook schemas from OpenAPI specifications'],
  ['retry', 're-queue event deliveries with a status within a timeframe'],
  ['server', 'start the HTTP server'],
  ['utils', 'utility commands'],
  ['version', 'print the version'],
];

type Type = 'string' | 'int' | 'uint' | 'uint32' | 'boolean';
type Flag = readonly [flag: string, type: Type, standard?: string];

const globals: readonly Flag[] = [
  ['--config', 'string', './gateway.json'],
  ...['database', 'host', 'options', 'password', 'scheme', 'type', 'username'].map((name): Flag => [
    `--db-${name}`,
    'string',
  ]),
  ['--db-port', 'int'],
  ...['database', 'host', 'password', 'scheme', 'type', 'username'].map((name): Flag => [
    `--kv-${name}`,
    'string',
  ]),
  ['--kv-port', 'int'],
  // "The root also carries flags for tracing, metrics, billing, feature flags and rate limits."
  ['--tracer-type', 'string'],
  ['--metrics-backend', 'string'],
  ['--enable-feature-flag', 'string'],
  ['--billing-enabled', 'boolean'],
  ['--api-rate-limit', 'uint'],
  ['--instance-ingest-rate', 'uint'],
];

const own: Readonly<Record<string, readonly Flag[]>> = {
  bootstrap: [
    ['--email', 'string'],
    ['--first-name', 'string', 'admin'],
    ['--last-name', 'string', 'admin'],
    ['--format', 'string', 'json'],
  ],
  'migrate up': [],
  'migrate down': [['--max', 'int']],
  'migrate create': [],
  config: [],
  server: [
    ['--api-auth', 'string'],
    ['--basic-auth', 'string'],
    ['--cache', 'string', 'kv'],
    ['--env', 'string', 'development'],
    ['--host', 'string'],
    ['--limiter', 'string', 'kv'],
    ['--logger', 'string', 'info'],
    ['--max-response-size', 'uint'],
    ['--native', 'boolean'],
    ['--port', 'uint32'],
    ['--pulladdr', 'string'],
    ['--proxy', 'string'],
    ['--root-path', 'string'],
    ['--ssl', 'boolean'],
    ['--ssl-cert-file', 'string'],
    ['--ssl-key-file', 'string'],
  ],
  agent: [
    ['--consumers', 'int', '-1'],
    ['--interval', 'int', '10'],
    ['--mode', 'string'],
    ['--port', 'uint32'],
    ['--smtp-from', 'string'],
    ['--smtp-password', 'string'],
    ['--smtp-port', 'uint32'],
    ['--smtp-provider', 'string'],
    ['--smtp-reply-to', 'string'],
    ['--smtp-ssl', 'boolean'],
    ['--smtp-url', 'string'],
    ['--smtp-username', 'string'],
  ],
  retry: [
    ['--status', 'string'],
    ['--time', 'string'],
  ],
};

const shown = new Map<string, Promise<string>>();

/** The output of `gateway <command> -h`, run once per command. */
function helpOf(command: string): Promise<string> {
  const running = shown.get(command) ?? succeeded([...command.split(' '), '-h']);
  shown.set(command, running);
  return running;
}

async function succeeded(
  args: readonly string[],
  options: Parameters<typeof runGateway>[1] = {},
): Promise<string> {
  const { stdout, stderr, code } = await runGateway(args, options);
  assert.is(code, 0, stderr);
  return stdout;
}

specification('gateway alone lists the commands, with their purposes', async () => {
  const listed = (await succeeded([])).split('COMMANDS')[1]!.replace(/\s+/g, ' ');
  for (const [command, purpose] of commands)
    assert.match(listed, new RegExp(` ${command} ${purpose}\\.`, 'i'));
  for (const alias of ['s', 'serve', 'worker', 'ingest', 'stream', 'scheduler'])
    assert.not.match(listed, ` ${alias} `);
});

for (const [command, purpose] of commands) {
  specification(`${command}: -h and help tell its purpose`, async () => {
    const help = await helpOf(command);
    assert.match(help.replace(/\s+/g, ' '), new RegExp(`^${purpose}\\.`, 'i'));
    assert.is(await succeeded(['help', command]), help);
  });
}

for (const [command, flags] of Object.entries(own)) {
  specification(
    `${command}: has the flags of the specification, with their types and defaults`,
    async () => {
      const help = await helpOf(command);
      for (const [flag, type, standard] of flags) {
        const described = describedIn(help, flag);
        assert.ok(described, `${command} has ${flag}`);
        if (type === 'boolean') assert.not.match(described, `${flag}=`);
        else assert.match(described, `${flag}=`);
        if (type !== 'boolean' && type !== 'string') assert.match(described, `${flag}=<integer>`);
        if (standard !== undefined)
          assert.match(
            described,
            new RegExp(`\\[default: ${standard.replaceAll('.', '\\.')}[\\],]`),
          );
      }
    },
  );
}

for (const command of ['bootstrap', 'retry']) {
  specification(`${command}: has the global flags, which help flags explains`, async () => {
    const help = await helpOf(command);
    const explained = await succeeded(['help', 'flags']);
    for (const [flag, type, standard] of globals) {
      assert.ok(help.split(/\s+/).includes(flag), `${command} has ${flag}`);
      const described = describedIn(explained, flag);
      assert.ok(described, `help flags explains ${flag}`);
      if (type !== 'boolean') assert.match(described, `${flag}=`);
      if (standard !== undefined) assert.match(described, `[default: ${standard}]`);
    }
  });
}

for (const command of ['server', 'agent']) {
  specification(
    `${command}: the flags that are numbers take numbers alone, and no unsigned one takes a negative`,
    async () => {
      const numbers = [...own[command]!, ...globals].filter(
        ([, type]) => type !== 'string' && type !== 'boolean',
      );
      const unsigned = numbers.filter(([, type]) => type !== 'int');
      for (const [value, flags, sentence] of [
        ['many', numbers, 'must be an integer, not "many"'],
        ['-5', unsigned, 'must be at least \\d+, not "-5"'],
      ] as const) {
        const { code, stderr } = await runGateway([
          command,
          ...flags.map(([flag]) => `${flag}=${value}`),
        ]);
        assert.is(code, 2);
        assert.ok(flags.length > 1);
        for (const [flag] of flags)
          assert.match(stderr, new RegExp(`${sentence} \\(from ${flag}\\)`));
      }
    },
  );
}

specification('server is called serve and s, too', async () => {
  const help = await helpOf('server');
  for (const alias of ['serve', 's'])
    assert.is((await helpOf(alias)).replaceAll(`gateway ${alias} `, 'gateway server '), help);
});

for (const [command, instead] of Object.entries({
  worker: 'agent',
  ingest: 'agent',
  stream: 'agent',
  scheduler: 'server',
})) {
  specification(`${command} says that ${instead} replaced it`, async () => {
    const { code, stderr } = await runGateway([command]);
    assert.is(code, 2);
    assert.match(
      stderr,
      new RegExp(`the command ${command} is no longer valid\\nfix: .*\`gateway ${instead}\``),
    );
  });
}

for (const [form, args, env] of [
  ['--feature-flag=experimental', ['config', '--feature-flag=experimental'], {}],
  ['GATEWAY_FEATURE_FLAG=1', ['config'], { GATEWAY_FEATURE_FLAG: '1' }],
] as const) {
  specification(`${form} is not valid any more, and says what is`, async () => {
    const { code, stderr } = await runGateway(args, { env });
    assert.is(code, 2);
    assert.match(stderr, `${form} is no longer valid`);
    assert.match(stderr, 'use --enable-feature-flag=<flag> or GATEWAY_ENABLE_FEATURE_FLAG=<flag>');
  });
}

/** File key, environment variable and flag of the settings table, with a test value. */
const settings: readonly (readonly [
  key: string,
  env: string | null,
  flag: string | null,
  value: number | string | boolean,
])[] = [
  ['instance_ingest_rate', 'GATEWAY_INSTANCE_INGEST_RATE', null, 7],
  ['metrics.enabled', 'GATEWAY_METRICS_ENABLED', null, true],
  ['metrics.metrics_backend', 'GATEWAY_METRICS_BACKEND', '--metrics-backend', 'pullmetrics'],
  ['metrics.pullmetrics_metrics.sample_time', null, null, 9],
  ['query_timeout', 'GATEWAY_METRICS_QUERY_TIMEOUT', null, 11],
  ['server.http.port', null, null, 6005],
  ['server.http.agent_port', 'AGENT_PORT', null, 6008],
  ['tracer.type', 'GATEWAY_TRACER_PROVIDER', '--tracer-type', 'otel'],
  ['tracer.otel.collector_url', 'GATEWAY_OTEL_COLLECTOR_URL', null, 'collector:4317'],
  ['tracer.otel.sample_rate', 'GATEWAY_OTEL_SAMPLE_RATE', null, 0.5],
  ['tracer.otel.insecure_skip_verify', 'GATEWAY_OTEL_INSECURE_SKIP_VERIFY', null, true],
  ['tracer.otel.otel_auth.header_name', 'GATEWAY_OTEL_AUTH_HEADER_NAME', null, 'x-key'],
  ['tracer.errtrack.environment', 'GATEWAY_ERRTRACK_ENVIRONMENT', null, 'staging'],
  ['tracer.errtrack.sample_rate', 'GATEWAY_ERRTRACK_SAMPLE_RATE', null, 0.25],
  ['tracer.errtrack.debug', 'GATEWAY_ERRTRACK_DEBUG', null, true],
  ['tracer.apm.agent_url', 'GATEWAY_APM_AGENT_URL', null, 'http://apm:8200'],
];

type Value = number | string | boolean;
type Row = (typeof settings)[number];
type Lines = Readonly<Record<string, { value: unknown; origin: string }>>;

function other(value: Value): Value {
  return typeof value === 'number'
    ? value < 1
      ? 0.1
      : value + 1
    : typeof value === 'boolean'
      ? !value
      : `${value}2`;
}

const withVariable = settings.filter(([, env]) => env !== null);
const withFlag = settings.filter(([, , flag]) => flag !== null);

/** The settings from a file, overridden by variables, overridden by flags, all at the same time. */
async function origins(
  file: (row: Row) => Value,
  variables?: (row: Row) => Value,
  flags?: (row: Row) => Value,
): Promise<Lines> {
  const config = settings.reduce<Tree>(
    (tree, row) => grafted(tree, row[0].split('.'), file(row)),
    {},
  );
  const env = variables
    ? Object.fromEntries(withVariable.map((row) => [row[1]!, String(variables(row))]))
    : {};
  const args = flags ? withFlag.map((row) => `${row[2]}=${String(flags(row))}`) : [];
  return JSON.parse(await succeeded(['config', '--origins', ...args], { config, env })) as Lines;
}

const given = ([, , , value]: Row) => value;
const another = ([, , , value]: Row) => other(value);
let byFile: Lines;
let byVariable: Lines;
let byFlag: Lines;
specification.before(async () => {
  byFile = await origins(given);
  byVariable = await origins(another, given);
  byFlag = await origins(another, another, given);
});

for (const [key, env, flag, value] of settings) {
  specification(
    `${key} comes from the file, then from ${env ?? 'nowhere else'}${flag ? `, then from ${flag}` : ''}`,
    () => {
      assert.equal(byFile[key], { value, origin: './gateway.json' });
      if (env) assert.equal(byVariable[key], { value, origin: env });
      if (flag) assert.equal(byFlag[key], { value, origin: flag });
    },
  );
}

specification(
  'the settings of metrics are taken under metrics, under its backend and where the specification has them',
  async () => {
    const config = { metrics: { sample_time: 9, pullmetrics_metrics: { query_timeout: 11 } } };
    const lines = JSON.parse(await succeeded(['config', '--origins'], { config })) as Lines;
    assert.equal(lines['metrics.pullmetrics_metrics.sample_time'], {
      value: 9,
      origin: './gateway.json',
    });
    assert.equal(lines['query_timeout'], { value: 11, origin: './gateway.json' });
    const two = { metrics: { sample_time: 9, pullmetrics_metrics: { sample_time: 8 } } };
    const { stdout, stderr } = await runGateway(['config', 'check'], { config: two });
    assert.match(
      stdout + stderr,
      /metrics\.pullmetrics_metrics\.sample_time \(from \.\/gateway\.json:\d+\) and metrics\.sample_time \(from \.\/gateway\.json:\d+\) are the same setting/,
    );
  },
);

interface Tree {
  readonly [name: string]: Value | Tree;
}

function grafted(tree: Tree, [name = '', ...rest]: readonly string[], value: Value): Tree {
  return {
    ...tree,
    [name]: rest.length === 0 ? value : grafted((tree[name] ?? {}) as Tree, rest, value),
  };
}

function describedIn(help: string, flag: string): string | undefined {
  const lines = help.split('\n');
  const at = lines.findIndex((line) =>
    new RegExp(`^ +(?:-\\w, )?${flag.replace('--', '--(?:\\[no-\\])?')}(?:[= ]|$)`).test(line),
  );
  if (at === -1) return undefined;
  const rest = lines.slice(at + 1);
  const end = rest.findIndex((line) => /^ *(?:-\w, )?--|^\S|^$/.test(line));
  return [lines[at], ...rest.slice(0, end === -1 ? undefined : end)]
    .join(' ')
    .replace(/\s+/g, ' ')
    .replace('--[no-]', '--');
}

specification.run();
