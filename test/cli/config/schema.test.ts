import { createRequire } from 'node:module';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { configSchema } from '#cli/config/schema';
import { parseSetting } from '#core/config/parse-value';
import { type Setting, type SettingsTable, settings } from '#core/config/settings';

const schema = suite('cli/config/schema');

// The server's version of Ajv, which differs from the root's.
const fromServer = createRequire(new URL('../../../packages/server/package.json', import.meta.url));
const { default: Validator } = fromServer('ajv/dist/2020.js') as { default: Ajv };

const rows: SettingsTable = {
  ...settings,
  'tracer.mine.rate': {
    type: 'number',
    min: 0,
    max: 1,
    summary: 'Rate.',
    owner: 'the tracer plugin mine',
    required: true,
  },
};
const validate = new Validator({ strict: true, allErrors: true }).compile(configSchema(rows));

function fileWith(key: string, value: unknown): unknown {
  return key.split('.').reduceRight<unknown>((inner, part) => ({ [part]: inner }), value);
}

schema('every default is valid, and so is a file that names the schema and nothing else', () => {
  assert.ok(validate({}));
  assert.ok(validate({ $schema: './gateway.schema.json' }));
  for (const [key, { default: value, withdrawn }] of Object.entries<Setting>(rows)) {
    if (value !== undefined && withdrawn === undefined)
      assert.ok(validate(fileWith(key, value)), key);
  }
});

schema(
  'an unknown key, a wrong type, a value out of bounds and an option that is none are refused, as the gateway does',
  () => {
    const wrong: [key: string, value: unknown][] = [
      ['serverr', {}],
      ['database.hots', 'a'],
      ['database.port', '5432'],
      ['database.port', 70_000],
      ['kv.type', 'memcached'],
      ['delivery.allowed_networks', [1]],
      ['retention.enabled', 'yes'],
      ['feature_flag', 'experimental'],
      ['tracer.mine.rate', 2],
      ['tracer.mine.rates', 1],
    ];
    for (const [key, value] of wrong) assert.not.ok(validate(fileWith(key, value)), key);
  },
);

schema('what a format takes as the gateway reads it, the pattern takes too', () => {
  const samples = {
    cidr: ['10.0.0.0/8', '::1/128', 'fd00::/8', 'ten', '10.0.0.0'],
    url: ['https://example.com/path', 'HTTP://10.0.0.1:80', 'ftp://example.com', 'example.com'],
    address: ['example.com:6379', '[::1]:80', ':9090', 'example.com', 'a:b:c'],
    target: [
      'collector:4317',
      'http://collector:4317',
      'HTTPS://[::1]:80/',
      ':4317',
      'collector',
      'http://collector:4317/v1',
      'ftp://a:1',
    ],
    dsn: [
      'https://key@host/42',
      'http://key:@host:9000/path/42',
      'https://host/42',
      'https://key@host/x',
      'https://key@[host/1',
      'https://key@host:x/1',
      'ftp://key@host/1',
    ],
    prefix: ['', '/gateway', '/a/b', '/a/', 'a'],
    email: ['a@b.c', 'Gateway <a@b.c>', 'a', 'Gateway <a>'],
  } as const;
  for (const [format, texts] of Object.entries(samples) as [
    keyof typeof samples,
    readonly string[],
  ][]) {
    const row: Setting = { type: 'string', format, summary: '' };
    const pattern = new Validator({ strict: true }).compile(configSchema({ it: row }));
    for (const text of texts)
      assert.is(
        pattern({ it: text }),
        'value' in parseSetting(row, text, false),
        `${format} ${text}`,
      );
  }
});

schema('secrets are marked, and withdrawn settings left out', () => {
  const { properties } = configSchema(rows) as {
    properties: Record<string, { writeOnly?: boolean } | undefined>;
  };
  assert.is(properties['encryption_key']?.writeOnly, true);
  assert.is(properties['feature_flag'], undefined);
});

schema.run();

type Ajv = new (options: object) => { compile(schema: object): (value: unknown) => boolean };
