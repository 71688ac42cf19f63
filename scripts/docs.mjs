// @ts-check
// `npm run docs`: generates the reference pages from the tables in the built packages, and the source
// of the client. Run `npm run build` first; test/meta/reference.test.ts fails if a page is stale.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import prettier from 'prettier';
import { configSchema } from '#cli/config/schema';
import { discover } from '#core/plugins/discovery';
import { openApiDocument } from '@gateway/server/openapi';
import { routes } from '@gateway/server/routes';
import { chartSchema } from './docs/chart-schema.mjs';
import { cliPage } from './docs/cli-page.mjs';
import { configurationPage } from './docs/configuration-page.mjs';
import { architecturePage } from './docs/drawings.mjs';
import { errorsPage } from './docs/errors-page.mjs';
import { httpPage } from './docs/http-page.mjs';
import { limitsPage, threatModelPage } from './docs/limits-page.mjs';
import { spansPage } from './docs/spans-page.mjs';
import { metricsPage } from './docs/metrics-page.mjs';
import { writeClient } from './prepare/client.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Its definitions are generated, the rest is not. */
const CHART = 'deploy/helm/gateway/values.schema.json';

/**
 * Returns the content of each generated file, by its path from the root.
 * @returns {Promise<Readonly<Record<string, string>>>}
 */
export async function referenceFiles() {
  const { rows } = discover({ root: path.resolve(root) });
  return {
    [CHART]: await json(
      chartSchema(JSON.parse(fs.readFileSync(path.join(root, CHART), 'utf8')), rows),
      100,
    ),
    'ARCHITECTURE.md': architecturePage(path.resolve(root)),
    'docs/reference/cli.md': await cliPage(path.resolve(root)),
    'docs/reference/configuration.md': configurationPage(rows),
    'docs/reference/gateway.schema.json': await json(configSchema(rows)),
    'docs/reference/errors.md': errorsPage(),
    'docs/reference/http.md': httpPage(path.resolve(root)),
    // A server publishes it with the version of the gateway.
    'docs/reference/openapi.json': await json(
      openApiDocument(routes, { version: 'v1', rootPath: '' }),
    ),
    'docs/reference/limits.md': limitsPage(path.resolve(root)),
    'docs/internals/threat-model.md': threatModelPage(path.resolve(root)),
    'docs/reference/spans.md': spansPage(),
    'docs/reference/metrics.md': metricsPage(),
  };
}

/**
 * @param {unknown} value
 * @param {number} printWidth
 */
function json(value, printWidth = 140) {
  return prettier.format(JSON.stringify(value), { parser: 'json', printWidth });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, text] of Object.entries(await referenceFiles())) {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), text);
    console.log(`wrote ${name}`);
  }
  writeClient(root);
}
