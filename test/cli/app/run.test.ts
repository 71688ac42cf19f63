import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { VERSION } from '#core/process/version';
import { runGateway } from '../../support/gateway.js';
import { root } from '../../meta/house.js';

const run = suite('cli/app/run');

/**
 * Expects a usage error: status 2, an empty standard output, one sentence and one fix on standard
 * error, no stack.
 */
async function wrong(
  args: readonly string[],
  sentence: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { code, stdout, stderr } = await runGateway(args, { env });
  assert.is(stderr.split('\nfix:')[0], `error: ${sentence}`);
  assert.is(stdout, '');
  assert.is(code, 2);
  assert.not.match(stderr, /\n\s+at |Error:|›|oclif/);
  return stderr;
}

run('a version of Node that is too old gets a sentence instead of a stack trace', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-node-'));
  const old = join(folder, 'old.cjs');
  writeFileSync(
    old,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.8' } });`,
  );
  try {
    const { code, stderr } = await runGateway(['server'], { env: { NODE_OPTIONS: `-r ${old}` } });
    assert.is(code, 1);
    assert.match(
      stderr,
      /^error: gateway needs Node 20\.19 or newer, and this is Node 18\.20\.8 \(.*\)\nfix: .*nvm install 24.*\n$/,
    );
    const entry = readFileSync(join(root, 'packages/cli/bin/gateway.js'), 'utf8');
    assert.not.match(entry, /\?\.|\?\?|'node:|^await/m, 'Node 12 parses the entry');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

run('the configuration file may be a pipe, as of a process substitution', async () => {
  const entry = join(root, 'packages/cli/bin/gateway.js');
  const { stdout, stderr } = await promisify(execFile)('bash', [
    '-c',
    `"$0" "$1" config --config <(echo '{"root_path":"/pipe"}')`,
    process.execPath,
    entry,
  ]);
  assert.is((JSON.parse(stdout) as { root_path: string }).root_path, '/pipe', stderr);
});

run('--help and help say the same as the command alone, and -h helps about one', async () => {
  const alone = await runGateway([]);
  for (const args of [['--help'], ['-h'], ['help']])
    assert.equal(await runGateway(args), alone, args.join(' '));
  const { stdout, code } = await runGateway(['agent', '-h']);
  assert.is(code, 0);
  for (const flag of [
    '--consumers=<integer>',
    '--interval=<integer>',
    '--mode=events|retry|default',
    '--port=<integer>',
    '--config',
    '--db-host',
    '--kv-port',
  ]) {
    assert.match(stdout, flag);
  }
  for (const text of [
    '[default: -1, which means 500',
    '[default: 10',
    '[default: 5008]',
    'EXAMPLES',
  ])
    assert.match(stdout.replace(/\s+/g, ' '), text);
  assert.is((await runGateway(['help', 'agent'])).stdout, stdout);
});

run('help of a topic lists its commands', async () => {
  const { stdout, code } = await runGateway(['migrate']);
  assert.is(code, 0);
  for (const command of ['migrate create', 'migrate down', 'migrate up'])
    assert.match(stdout, command);
});

run('version prints the version, by command and by flag', async () => {
  assert.is((await runGateway(['version'])).stdout, `gateway ${VERSION}\n`);
  assert.match((await runGateway(['--version'])).stdout, `gateway/${VERSION} `);
});

run('global flags mean the same before the command as after it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-flags-'));
  writeFileSync(join(folder, 'mine.json'), '{ "env": "mine" }');
  try {
    const global = [
      '--config',
      './mine.json',
      '--enable-feature-flag=pullmetrics',
      '--no-billing-enabled',
    ];
    const after = await runGateway(['config', '--origins', ...global], { folder });
    assert.is(after.code, 0, after.stderr);
    assert.match(after.stdout, '"mine"');
    assert.equal(await runGateway([...global, 'config', '--origins'], { folder }), after);
    assert.equal(
      await runGateway([...global.slice(0, 2), 'config', ...global.slice(2), '--origins'], {
        folder,
      }),
      after,
    );
    const checked = await runGateway(['config', ...global, 'check'], { folder });
    assert.equal(checked, await runGateway(['config', 'check', ...global], { folder }));
    const help = await runGateway(['server', '--help'], { folder });
    for (const args of [
      ['server', '--help'],
      ['help', 'server'],
      ['server', '-h'],
    ])
      assert.equal(await runGateway([...global, ...args], { folder }), help, args.join(' '));
    await wrong([...global.slice(2), 'worker'], 'the command worker is no longer valid');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

run('a mistyped command is wrong use, with a suggestion', async () => {
  await wrong(['agnet'], 'there is no command agnet; did you mean agent?');
  await wrong(['migrat', 'up'], 'there is no command migrat up; did you mean migrate up?');
  await wrong(['migrate', 'upp'], 'there is no command migrate upp; did you mean migrate up?');
  await wrong(['config', 'chekc'], 'there is no command config chekc; did you mean config check?');
  await wrong(
    ['utils', 'quarantine', 'lst'],
    'there is no command utils quarantine lst; did you mean utils quarantine list?',
  );
  await wrong(
    ['plugins', 'instal', './mine'],
    'there is no command plugins instal; did you mean plugins install?',
  );
  const stderr = await wrong(['help', 'confg'], 'there is no command confg; did you mean config?');
  assert.match(stderr, 'fix:   run `gateway` for the list of commands');
  await wrong(['deliveries'], 'there is no command deliveries');
});

run('a mistyped flag is wrong use, with a suggestion', async () => {
  const stderr = await wrong(
    ['server', '--prot', '5005'],
    '--prot is not a flag of gateway server; did you mean --port?',
  );
  assert.match(stderr, 'fix:   run `gateway server --help` for its flags and arguments');
  await wrong(
    ['config', '--db-hots=x', '--nonsense'],
    '--db-hots is not a flag of gateway config; did you mean --db-host?\n       --nonsense is not a flag of gateway config',
  );
  await wrong(
    ['utils', 'quarantine', 'list', '--stats', 'x'],
    '--stats is not a flag of gateway utils quarantine list; did you mean --status?',
  );
  await wrong(
    ['--port', '1', 'server'],
    '--port is before the command, where only global flags are allowed',
  );
  await wrong(
    ['migrate', '--max', '1', 'down'],
    '--max is before the command, where only global flags are allowed',
  );
  await wrong(
    ['--db-host', 'a', 'migrat', 'up'],
    'there is no command migrat up; did you mean migrate up?',
  );
  await wrong(['--db-host', 'a'], 'gateway needs a command');
  await wrong(['--db-host', 'a', 'migrate'], 'gateway migrate needs a command');
  await wrong(
    ['migrate', 'down', '--maxx', '1'],
    '--maxx is not a flag of gateway migrate down; did you mean --max?',
  );
});

run(
  'a flag without its value, a value without its flag and a missing argument are wrong use',
  async () => {
    await wrong(['config', '--db-host'], '--db-host needs a value');
    await wrong(['config', 'extra'], 'extra is not an argument of gateway config');
    await wrong(['migrate', 'create'], 'gateway migrate create needs <name>');
  },
);

run('a wrong value of a flag is wrong use, and all of them are told at once', async () => {
  await wrong(
    ['agent', '--mode', 'evnts'],
    'agent.mode must be one of events, retry, default, not "evnts" (from --mode); did you mean events?',
  );
  await wrong(
    ['agent', '--port=http', '--consumers=many'],
    '2 flags are wrong:\n         consumer_pool_size must be an integer, not "many" (from --consumers)\n         server.http.agent_port must be an integer, not "http" (from --port)',
  );
});

run('a command with a name that every object has is a command that is not known', async () => {
  for (const command of ['constructor', 'toString'])
    await wrong([command], `there is no command ${command}`);
});

run('a flag of the past is refused with its value, however that is written', async () => {
  await wrong(
    ['agent', '--feature-flag', 'experimental'],
    '--feature-flag=experimental is no longer valid',
  );
});

run('a configuration file that cannot be used is named', async () => {
  const { code, stderr } = await runGateway(['config', '--config', './missing.json']);
  assert.is(code, 1);
  assert.match(
    stderr,
    'error: the configuration file ./missing.json cannot be read: there is no such file or folder\nfix:   name a readable file with --config',
  );
});

run(
  'help loads no library that a command needs for its work, and no plugin; the list of commands not even a command',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gateway-loads-'));
    const seen = join(folder, 'hook.mjs');
    writeFileSync(
      seen,
      `import { writeSync } from 'node:fs';\nexport const load = (url, context, next) => (writeSync(2, url + '\\n'), next(url, context));\n`,
    );
    const preload = join(folder, 'preload.mjs');
    writeFileSync(
      preload,
      `import { register } from 'node:module';\nregister(${JSON.stringify(pathToFileURL(seen).href)});\n`,
    );
    const loaded = async (args: readonly string[]): Promise<string[]> => {
      const { stderr, code } = await runGateway(args, {
        env: { NODE_OPTIONS: `--import ${pathToFileURL(preload).href}` },
      });
      assert.is(code, 0);
      return stderr.split('\n');
    };
    // The table of reject codes is allowed: help lists them.
    const heavy =
      /node_modules\/(knex|pg|ioredis|koa|undici|pino|ses|kafkajs|prom-client|elastic-apm-node|@aws-sdk|@sentry|@opentelemetry)\/|\/(store|server|agent|sandbox|plugins\/[^/]+)\/dist\/(?!model\/)/;
    try {
      const list = await loaded([]);
      assert.ok(
        list.some((url) => url.includes('/cli/dist/app/command-index.js')),
        'the hook sees what is loaded',
      );
      assert.equal(
        list.filter((url) => heavy.test(url) || url.includes('@oclif')),
        [],
      );
      const help = await loaded(['server', '-h']);
      assert.equal(
        help
          .filter((url) => url.includes('/cli/dist/commands/'))
          .map((url) => url.split('/commands/')[1]),
        ['server.js'],
        'no other command',
      );
      // A flag before the command prevents the look-up of a single command: all are loaded.
      const all = await loaded(['-h', 'server']);
      assert.ok(all.some((url) => url.includes('/cli/dist/commands/utils/quarantine/list.js')));
      for (const urls of [help, all]) {
        assert.equal(
          urls.filter((url) => heavy.test(url)),
          [],
        );
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

run.run();
