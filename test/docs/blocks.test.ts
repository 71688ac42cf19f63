// deadline: 300 s
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { parseYaml } from '@redocly/openapi-core';
import { renderMermaidSVG } from 'beautiful-mermaid';
import { transform as parse, type Loader } from 'esbuild';
import ts from 'typescript';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { settings } from '#core/config/settings';
import { discover } from '#core/plugins/discovery';
import { type Payload, Sandbox, type TransformResult } from '@gateway/sandbox';
import { files, read, root } from '../meta/house.js';
import { mistakesIn } from '../meta/promql.js';
import { migratedDatabase } from '../store/migrated.js';
import { endpoint } from '../support/endpoint.js';
import { freePort } from '../support/ports.js';
import { production, subscribed } from '../support/production.js';
import { tempFolder } from '../support/start/keep.js';
import { installed } from '../support/start/packages.js';
import { until } from '../support/until.js';
import { blocksOf, runBlocks, type Block } from './page.js';

const docs = suite('docs/blocks');

const pages = files().filter((name) =>
  /^(README|docs\/(?!decisions\/|reference\/).*|docs\/reference\/(http|ingest-message))\.md$/.test(
    name,
  ),
);
const blocks = pages.flatMap((page) => blocksOf(page));
const sh = blocks.filter(({ kind }) => kind === 'sh');

/** Tests that run the shell blocks of a page, or of a section. */
const FOLLOWED: Readonly<Record<string, string>> = {
  'README.md#In production': 'test/docs/install-guides.test.ts',
  'docs/start.md': 'test/e2e/start.test.ts',
  'docs/guides/api.md': 'test/docs/api-guide.test.ts',
  'docs/guides/archive.md': 'test/docs/archive-guide.test.ts',
  'docs/guides/batches.md': 'test/docs/batches-guide.test.ts',
  'docs/guides/docker.md': 'test/docs/docker-guide.test.ts',
  'docs/guides/install.md': 'test/docs/install-guides.test.ts',
  'docs/guides/cloudevents.md': 'test/docs/cloudevents-guide.test.ts',
  'docs/guides/kafka.md': 'test/docs/kafka-guide.test.ts',
  'docs/guides/kubernetes.md': 'test/docs/kubernetes-guide.test.ts',
  'docs/guides/managed-postgres.md': 'test/e2e/managed-postgres.test.ts',
  'docs/guides/ordering.md': 'test/docs/ordering-guide.test.ts',
  'docs/guides/send-later.md': 'test/server/routes/events/scheduled-events.test.ts',
  'docs/guides/shards.md': 'test/docs/shards-guide.test.ts',
  'docs/guides/signatures.md': 'test/docs/signatures-guide.test.ts',
  'docs/guides/systemd.md': 'test/deploy/debian.test.ts',
};

/** Shell blocks that no test runs, and why. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'README.md': 'commands of a clone, which take minutes',
  'docs/compare.md': 'benchmarks, which take minutes',
  'docs/internals/testing.md': 'commands of a clone and benchmarks, which take minutes',
  'docs/guides/client.md': 'the package is not in a registry yet',
  'docs/guides/codecs.md':
    'needs a schema registry; test/server/routes/sources/codec.test.ts makes the same request',
  'docs/guides/logs.md': 'an agent that runs until it is stopped',
  'docs/guides/tracing.md': 'needs Docker',
  'docs/guides/write-a-plugin.md': 'test/cli/commands/plugins/create.test.ts takes the same steps',
};

/** The key of a block in a table of pages and sections. */
const keyIn = (table: Readonly<Record<string, unknown>>, { page, section }: Block) =>
  [`${page}#${section}`, page].find((key) => key in table);

const isRunHere = (block: Block) =>
  block.page === 'README.md'
    ? block.section === 'Operate it'
    : !keyIn(FOLLOWED, block) && !keyIn(NOT_RUN, block);

const scripts = (JSON.parse(read('package.json')) as { scripts: Record<string, string> }).scripts;
const { rows } = discover({ root });

function checkSettings(file: Record<string, unknown>): void {
  resolveConfig({ env: {}, file, rows });
}

async function checkSyntax(text: string, loader: Loader): Promise<void> {
  const { warnings } = await parse(text, { loader });
  assert.equal(warnings, []);
}

/** Checks of a block by its kind. Each throws if the block is wrong. */
const CHECKS: Readonly<Record<string, (block: Block) => unknown>> = {
  /** One value, or the output of several commands, one a line. */
  json({ text, title }) {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      const lines = text.trim().split('\n');
      if (lines.length === 1) throw error;
      return lines.map((line) => JSON.parse(line) as unknown);
    }
    const names = Array.isArray(value) ? [] : Object.keys(value as object);
    const groups = new Set(Object.keys(settings).map((key) => key.split('.')[0]));
    if (title === 'gateway.json') checkSettings(value as Record<string, unknown>);
    else if (names.length > 0 && names.every((name) => groups.has(name)))
      throw new Error('these are settings: add title="gateway.json"');
    return value;
  },
  yaml({ text }) {
    const { config } = parseYaml(text) as { config?: Record<string, unknown> };
    if (config) checkSettings(config);
  },
  sh({ text }) {
    execFileSync('bash', ['-n'], { input: text, stdio: ['pipe', 'ignore', 'pipe'] });
    for (const [, script = ''] of text.matchAll(/^npm (?:run )?([\w:]+)/gm))
      assert.ok(script in scripts || ['install', 'ci'].includes(script), `npm has no ${script}`);
  },
  sql: async ({ text }) => {
    const db = await migratedDatabase();
    try {
      for (const statement of text.split(/;\n/).filter((it) => it.trim()))
        await db.rows(`explain ${statement}`);
    } finally {
      await db.close();
    }
  },
  promql({ text }) {
    assert.equal(text.trim().split('\n').flatMap(mistakesIn), []);
  },
  http({ text }) {
    const [head = '', body = ''] = text.split('\n\n');
    assert.match(head, /^[A-Z]+ \/\S* HTTP\/1\.1(\n[\w-]+: .+)+$/);
    JSON.parse(body);
  },
  ini({ text }) {
    for (const line of text.split('\n')) assert.match(line, /^(\[\w+\]|\w+ = .+)?$/);
  },
  html: ({ text }) => checkSyntax(/<script>([^]*)<\/script>/.exec(text)?.[1] ?? 'no script!', 'js'),
  css: ({ text }) => checkSyntax(text, 'css'),
  js: ({ text }) => checkSyntax(text, 'js'),
  /** Run by the test that follows its page. */
  python: ({ text }) =>
    void execFileSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
      input: text,
    }),
  mermaid: ({ text }) => renderMermaidSVG(text),
  /** Compiled below, all together. */
  ts: () => undefined,
  /** Output, compared by the test that runs the commands before it. */
  text: () => undefined,
};

docs('each block of code is of a known kind, and right by itself', async () => {
  assert.ok(blocks.length > 120, `there are only ${blocks.length} blocks`);
  const wrong = await Promise.all(
    blocks.map(async (block) => {
      const check = CHECKS[block.kind];
      const place = `${block.page}:${block.line}`;
      if (!check) return `${place}: the kind "${block.kind}" is unknown`;
      try {
        await check(block);
        return undefined;
      } catch (error) {
        return `${place}: ${(error as Error).message}`;
      }
    }),
  );
  assert.equal(
    wrong.filter((it) => it !== undefined),
    [],
  );
});

docs('TypeScript compiles under strict', () => {
  const texts = new Map(
    blocks
      .filter(({ kind }) => kind === 'ts')
      .map(({ page, line, text }) => [
        path.join(root, 'test/docs', `${path.basename(page)}-${line}.ts`),
        text,
      ]),
  );
  assert.ok(texts.size >= 4);
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    noEmit: true,
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => texts.has(name) || fileExists(name);
  host.readFile = (name) => texts.get(name) ?? readFile(name);
  host.getSourceFile = (name, version, ...rest) => {
    const text = texts.get(name);
    return text === undefined
      ? getSourceFile(name, version, ...rest)
      : ts.createSourceFile(name, text, version);
  };
  const program = ts.createProgram([...texts.keys()], options, host);
  assert.is(ts.formatDiagnostics(ts.getPreEmitDiagnostics(program), host), '');
});

docs('the functions of docs/guides/transform.md do what the page says', async () => {
  const json = (value: object) => JSON.stringify(value);
  const order = '{"id":"o-1","status":"paid","shop":"tenant-a","total":12.5}';
  const broken = '{"id":"o-1","status":';
  const calls: readonly (readonly [sample: Payload, result: RegExp])[][] = [
    [
      [
        order,
        /"event_type":"order.paid","owner_id":"tenant-a".*"data":\{"id":"o-1","total":12.5\}/,
      ],
      [broken, /an order needs an id and a status/],
    ],
    [
      [json({ test: true }), /^dropped$/],
      [json({ items: [{ n: 1 }] }), /^\[\{"event_type":"item.sold","data":\{"n":1\}\}\]$/],
    ],
    [
      ['paid;o-7', /^\{"event_type":"paid","data":\{"id":"o-7"\}\}$/],
      [broken, /expected kind;id/],
    ],
    [['{"n":1}', /"event_type":"order.paid","owner_id":"o-1","data":\{"n":1,"offset":7\}/]],
    [
      [Buffer.from('paid;Müller', 'latin1'), /"data":\{"name":"Müller"\}/],
      [broken, /expected kind;name/],
    ],
    [[order, /^\{"text":"Order o-1: 12.5 €"\}$/]],
  ];
  const functions = blocks.filter(
    ({ page, kind }) => page.endsWith('transform.md') && kind === 'js',
  );
  assert.is(functions.length, calls.length);
  const sandbox = new Sandbox({ processes: 1 });
  const message = '{"key":"o-1","offset":7,"headers":{"x-type":"order.paid"}}';
  try {
    for (const [at, { text }] of functions.entries())
      for (const [sample, result] of calls[at] ?? []) {
        const [made] = await sandbox.run({ key: text, text }, [sample], undefined, [message]);
        assert.match(textOf(made!), result);
      }
  } finally {
    await sandbox.close();
  }
});

const textOf = (made: TransformResult) =>
  made.kind === 'object'
    ? made.json
    : made.kind === 'array'
      ? `[${made.items.join()}]`
      : made.kind === 'refused'
        ? made.reason
        : made.kind;

docs('each shell block is run here, by another test, or has a reason not to be', () => {
  for (const [page, test] of Object.entries(FOLLOWED)) {
    assert.ok(read(test).includes(path.basename(page.split('#')[0] ?? '')), `${test}: ${page}`);
    assert.ok(
      sh.some((block) => keyIn(FOLLOWED, block) === page),
      page,
    );
  }
  for (const page of Object.keys(NOT_RUN))
    assert.ok(
      sh.some((block) => block.page === page),
      page,
    );
});

docs('the commands of the other pages run against a live gateway', async () => {
  for (const program of ['curl', 'jq', 'openssl'])
    installed(program, [program], 'for the lines of the guides');
  const [gateway, inbox] = await Promise.all([
    production({ agents: 1 }),
    endpoint({ answer: { status: 503 } }),
  ]);
  try {
    const url = `http://127.0.0.1:${gateway.serverPort}`;
    await subscribed(gateway, inbox.url);
    const { uid: ENDPOINT_ID } = await gateway.api('POST', '/endpoints', {
      name: 'shop',
      url: 'https://example.com/webhooks',
    });
    const throws = { name: 'hooks', type: 'http', body_function: 'function transform() { x.y; }' };
    const source = await gateway.api('POST', '/sources', throws);
    await fetch(`${url}/ingest/${String(source['mask_id'])}`, { method: 'POST', body: '{}' });
    const fixed = `function transform() { return { event_type: 'order.paid', data: {} }; }`;
    await gateway.api('PUT', `/sources/${source.uid}`, { body_function: fixed });
    await gateway.api('POST', '/event-types/import', webhooks('order.refunded'));
    const { uid: EVENT_ID } = await gateway.api('POST', '/events', {
      event_type: 'order.paid',
      data: {},
    });
    const first = async (path: string) => {
      const { content } = await gateway.api<{ content: { uid: string }[] }>('GET', path);
      return content[0]?.uid;
    };
    const account = await gateway.api<{ organisation_id: string }>('GET', '');
    const env = {
      GATEWAY_URL: url,
      GATEWAY_KEY: gateway.apiKey,
      PROJECT_ID: gateway.projectId,
      ORGANISATION_ID: account.organisation_id,
      ENDPOINT_ID,
      EVENT_ID,
      SOURCE_ID: source.uid,
      ISSUE_ID: await until('an issue', () => first('/issues')),
      MESSAGE_ID: await until('a quarantined message', () => first('/quarantine')),
      EDITOR: 'true',
      AGENT_PORT: String(await freePort()),
    };
    const [readme, ...others] = new Set(sh.filter(isRunHere).map(({ page }) => page));
    assert.ok(others.length >= 15, others.join());
    const run = (page: string) => runPage(page, env, gateway.run.folder);
    await runClient(env);
    // `doctor` fails once other pages have made sources without a broker.
    await run(readme!);
    const failures = (await Promise.allSettled(others.map(run))).flatMap((result) =>
      result.status === 'rejected' ? [(result.reason as Error).message] : [],
    );
    assert.is(failures.join('\n\n'), '');
  } finally {
    await gateway.close();
    await inbox.close();
  }
});

docs.run();

/** Runs the shell blocks of a page in a folder that has the files it names. */
async function runPage(page: string, env: Record<string, string>, gatewayFolder: string) {
  const cwd = tempFolder('page');
  fs.copyFileSync(path.join(gatewayFolder, 'gateway.json'), path.join(cwd, 'gateway.json'));
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(cwd, 'node_modules'));
  const write = (name: string, text: string) => fs.writeFileSync(path.join(cwd, name), text);
  const all = blocksOf(page);
  write('transform.js', all.find(({ kind }) => kind === 'js')?.text ?? '');
  write('order.json', '{"id":"o-1","status":"paid","shop":"tenant-a","total":12.5}');
  write('openapi.yaml', JSON.stringify(webhooks('order.paid', 'order.refunded')));
  write('orders.yaml', JSON.stringify(webhooks('order.paid')));
  write('refunds.json', JSON.stringify(webhooks('order.refunded')));
  await runBlocks(
    all.filter((block) => block.kind !== 'sh' || isRunHere(block)),
    {
      cwd,
      env,
      before: `
        openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=shop -keyout client.key -out client.pem 2>/dev/null
        curl() { case " $* " in *' --fail '*) ;; *) set -- --fail-with-body "$@"; esac; command curl "$@"; }`,
      replaced: {
        '127.0.0.1:5008': `127.0.0.1:${env['AGENT_PORT']}`,
        'ada@example.com': 'ops@example.com',
        // An agent takes a minute to start on a busy machine.
        '--retry 30': '--retry 120',
        // Their brokers do not exist.
        '/sources" -H': '/sources?skip_check=true" -H',
      },
    },
  );
}

/** Runs the first program of the client's guide. */
async function runClient(env: Record<string, string>) {
  const program = blocksOf('docs/guides/client.md').find(({ kind }) => kind === 'ts');
  const cwd = tempFolder('client');
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(cwd, 'node_modules'));
  fs.writeFileSync(path.join(cwd, 'client.mts'), program?.text ?? '');
  await promisify(execFile)(process.execPath, ['--import=tsx', 'client.mts'], { cwd, env });
}

/** An OpenAPI document with these webhooks. */
function webhooks(...names: string[]) {
  const body = { content: { 'application/json': { schema: { type: 'object' } } } };
  const webhook = { post: { requestBody: body, responses: { 200: { description: 'taken' } } } };
  return {
    openapi: '3.1.0',
    info: { title: 'Shop', version: '1' },
    webhooks: Object.fromEntries(names.map((name) => [name, webhook])),
  };
}
