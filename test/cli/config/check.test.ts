import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { checkConfig, type CheckedConfig } from '#cli/config/check';
import { discover } from '#core/plugins/discovery';
import { installation, manifestOf } from '../../core/plugin-packages.js';

const check = suite('cli/config/check');

const key = Buffer.alloc(32, 7).toString('base64');

const { root, close } = installation({
  'mine-package': {
    gateway: manifestOf({ kind: 'tracer', name: 'mine', settings: './settings.json' }),
    files: {
      'settings.json': JSON.stringify({
        'tracer.mine.url': { type: 'string', required: true, summary: 'Where to.' },
        'tracer.mine.rate': { type: 'number', max: 1, default: 1, summary: 'Share.' },
      }),
    },
  },
  'licensed-package': {
    gateway: manifestOf({ kind: 'tracer', name: 'licensed', entitlement: 'licensed' }),
  },
});
const discovery = discover({ root });
check.after(close);

function checked(
  text: string,
  { env = {}, flags = {} }: { env?: Record<string, string>; flags?: Record<string, string> } = {},
): CheckedConfig {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-check-'));
  const file = join(folder, 'gateway.json');
  try {
    writeFileSync(file, text);
    const found = checkConfig({ rows: discovery.rows, file, env, flags }, discovery);
    const bare = (problems: CheckedConfig['problems']) =>
      problems.map((it) => ({
        ...it,
        origin: it.origin.replace(file, 'file'),
        sentence: it.sentence.replaceAll(file, 'file'),
      }));
    return { ...found, problems: bare(found.problems), warnings: bare(found.warnings) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const sentences = (problems: CheckedConfig['problems']) => problems.map(({ sentence }) => sentence);

check(
  'what is right has no problems, and tells the plugins and how many settings are given',
  () => {
    const found = checked(JSON.stringify({ encryption_key: key, kv: { port: 1 } }), {
      env: { AGENT_PORT: '7' },
      flags: { 'db-host': 'a' },
    });
    assert.equal([found.problems, found.warnings, found.given], [[], [], 4]);
    assert.equal(
      found.plugins.map(({ name, state, reason }) => [name, state, reason]),
      [
        ['mine', 'inactive', 'not selected'],
        ['licensed', 'inactive', 'not selected'],
      ],
    );
  },
);

check('mistakes of every kind are told at once, those in the file with their line', () => {
  const text = `{
  "serverr": 1,
  "encryption_key": "short",
  "kv": {
    "scheme": "redis",
    "tls": { "ca_file": "ca.pem" }
  },
  "tracer": { "type": "mine", "mine": { "rate": 2 } }
}`;
  const { problems } = checked(text, {
    env: { AGENT_PORT: 'x', GATEWAY_FEATURE_FLAG: '1' },
    flags: { 'db-port': '0' },
  });
  assert.equal(
    problems.map((it) => [it.key, it.origin]),
    [
      ['feature_flag', 'GATEWAY_FEATURE_FLAG'],
      ['serverr', 'file:2'],
      ['database.port', '--db-port'],
      ['server.http.agent_port', 'AGENT_PORT'],
      ['tracer.mine.rate', 'file:8'],
      ['kv.tls.ca_file', 'file:6'],
      ['tracer.mine.url', 'default'],
      ['encryption_key', 'file:3'],
    ],
  );
  const [, unknown, , , rate, together, missing] = sentences(problems);
  assert.is(unknown, 'serverr is not a setting (from file:2); did you mean server?');
  assert.is(rate, 'tracer.mine.rate must be at most 1, not 2 (from file:8)');
  assert.match(together!, /^kv\.tls\.ca_file is set, but kv\.scheme is redis.*\(from file:6\)$/);
  assert.is(missing, 'tracer.mine.url is not set, and the tracer plugin mine needs it');
});

check('no contradiction is made up from the default of a setting that is wrong', () => {
  const { problems } = checked('{ "kv": { "scheme": "redisss", "tls": { "ca_file": "ca.pem" } } }');
  assert.equal(
    problems.map((it) => it.key),
    ['kv.scheme'],
  );
});

check('the lines of both keys of a setting are told when their values differ', () => {
  const { problems } = checked(
    `{ "encryption_key": "${key}",\n"metrics": {\n"query_timeout": 7 },\n"query_timeout": 8 }`,
  );
  const both = 'query_timeout (from file:4) and metrics.query_timeout (from file:3)';
  const sentence = `${both} are the same setting and have different values; remove one of them`;
  assert.equal(problems, [{ key: 'query_timeout', origin: 'file:4', sentence }]);
});

check(
  'a file that is no JSON is one problem, and flags and variables are checked all the same',
  () => {
    const { problems, file } = checked('{ "kv": }', { env: { AGENT_PORT: 'x' } });
    assert.equal([problems.length, file], [2, undefined]);
    assert.match(
      problems[0]!.sentence,
      'the configuration file file is not a JSON object: line 1, column 9: unexpected "}"',
    );
    assert.is(problems[1]!.key, 'server.http.agent_port');
  },
);

check(
  'a plugin that is asked for and cannot be had is a warning, and a problem with plugins.strict',
  () => {
    const file = { encryption_key: key, tracer: { type: 'licensed' } };
    const { problems, warnings } = checked(JSON.stringify(file));
    assert.equal([problems, warnings.length], [[], 1]);
    assert.match(warnings[0]!.sentence, /^licensed: .*licence/);
    const strict = checked(JSON.stringify({ ...file, plugins: { strict: true } }));
    assert.equal([strict.problems, strict.warnings], [warnings, []]);
  },
);

check('a missing encryption key and a licence that is not in force are warnings', () => {
  const { problems, warnings } = checked('{ "license_key": "forged" }');
  assert.equal(problems, []);
  assert.equal(
    warnings.map((it) => it.key),
    ['encryption_key', 'license_key'],
  );
  assert.not.match(JSON.stringify(warnings), '"forged"');
});

check.run();
