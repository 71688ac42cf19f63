// @ts-check
// `node scripts/docs.mjs`: writes the reference pages that are made from the tables of the built packages. `npm run build` comes first;
// test/meta/reference.test.ts fails when a page is stale.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import prettier from 'prettier';
import { configSchema } from '#cli/config/schema';
import { discover } from '#core/plugins/discovery';
import { cliPage } from './docs/cli-page.mjs';
import { configurationPage } from './docs/configuration-page.mjs';
import { errorsPage } from './docs/errors-page.mjs';
import { spansPage } from './docs/spans-page.mjs';
import { metricsPage } from './docs/metrics-page.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * What the generated files hold, by their path from the root.
 * @returns {Promise<Readonly<Record<string, string>>>}
 */
export async function referenceFiles() {
  const { rows } = discover({ root: path.resolve(root) });
  return {
    'docs/reference/cli.md': await cliPage(path.resolve(root)),
    'docs/reference/configuration.md': configurationPage(rows),
    'docs/reference/gateway.schema.json': await json(configSchema(rows)),
    'docs/reference/errors.md': errorsPage(),
    'docs/reference/spans.md': spansPage(),
    'docs/reference/metrics.md': metricsPage(),
  };
}

/** @param {unknown} value */
function json(value) {
  return prettier.format(JSON.stringify(value), { parser: 'json', printWidth: 140 });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, text] of Object.entries(await referenceFiles())) {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), text);
    console.log(`wrote ${name}`);
  }
}
