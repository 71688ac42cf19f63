import { pathToFileURL } from 'node:url';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { summaries } from '#cli/app/command-index';
import { errors } from '#core/errors/error-table';
import { series } from '#core/metrics/series';
import { type SettingsTable, settings } from '#core/config/settings';
import { spans, type SpanRow } from '#core/tracing/spans';
import { files, read, root } from './house.js';

const reference = suite('meta/reference');

const script = pathToFileURL(path.join(root, 'scripts/docs.mjs')).href;
const made = await (
  (await import(script)) as { referenceFiles(): Promise<Record<string, string>> }
).referenceFiles();

for (const [name, text] of Object.entries(made)) {
  reference(`${name} is what \`node scripts/docs.mjs\` makes`, () => {
    assert.ok(files().includes(name), `${name} is missing: run \`node scripts/docs.mjs\``);
    assert.fixture(read(name), text, `${name} is stale: run \`node scripts/docs.mjs\``);
  });
}

reference(
  'every setting of the gateway is on its page with its variable and flag, and in the schema unless it is withdrawn',
  () => {
    const page = made['docs/reference/configuration.md'] ?? '';
    const schema = JSON.parse(made['docs/reference/gateway.schema.json'] ?? '') as Schema;
    for (const [key, { flag, withdrawn }] of Object.entries<SettingsTable[string]>(settings)) {
      const line = page.split('\n').find((it) => it.startsWith(`| \`${key}\``));
      assert.ok(line, `${key} is not on the page`);
      if (flag) assert.match(line, `--${flag}`);
      assert.is(inSchema(schema, key), withdrawn === undefined, key);
    }
  },
);

reference('every command is on its page, and the flag of a setting on that of the settings', () => {
  const page = made['docs/reference/cli.md'] ?? '';
  for (const id of Object.keys(summaries))
    assert.match(page, `\n## gateway ${id.replaceAll(':', ' ')}\n`);
  assert.match(page, /^- Database: .*`--db-port`/m);
  assert.match(page, /^- \[Settings\]\(configuration\.md\): .*`--consumers`/m);
  assert.match(
    made['docs/reference/configuration.md'] ?? '',
    '| `database.port` | `GATEWAY_DB_PORT` | `--db-port` | integer',
  );
  assert.not.match(page, /<%=|undefined|\[object/);
});

reference('no sentence of the table of errors comes out with a hole', () => {
  const page = made['docs/reference/errors.md'] ?? '';
  for (const code of Object.keys(errors)) assert.match(page, `| \`${code}\` |`);
  assert.not.match(page, /undefined|\[object|NaN|function \(/);
});

reference('every series is on its page, with its type and labels', () => {
  const page = made['docs/reference/metrics.md'] ?? '';
  for (const [name, { type, labels }] of Object.entries(series)) {
    assert.ok(
      page.includes(
        `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} |`,
      ),
      name,
    );
  }
  assert.not.match(page, /undefined|\[object|NaN/);
});

reference('every span and every attribute of one is on its page', () => {
  const page = made['docs/reference/spans.md'] ?? '';
  const rows = Object.entries<SpanRow>(spans);
  for (const name of rows.flatMap(([name, { attributes }]) => [name, ...attributes]))
    assert.match(page, `\n| \`${name}\` | `);
});

reference.run();

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}

function inSchema(schema: Schema, key: string): boolean {
  let at: Schema | undefined = schema;
  for (const part of key.split('.')) at = at?.properties?.[part];
  return at !== undefined;
}
