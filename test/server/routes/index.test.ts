import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { routes } from '@gateway/server/routes';

const index = suite('server/routes/index');

const page = readFileSync(new URL('../../../docs/reference/http.md', import.meta.url), 'utf8');

index('docs/reference/http.md lists every route with its summary, and no other', () => {
  const declared = routes.map(({ method, path, reach, summary }) => {
    const whole = reach === 'project' ? `/projects/{project_id}${path}` : path;
    return `| ${method.toUpperCase()} | \`${whole.replace(/:(\w+)/g, '{$1}')}\` | ${summary} |`;
  });
  const documented = page.split('\n').filter((line) => /^\| (GET|POST|PUT|DELETE) \|/.test(line));
  assert.equal(documented, declared);
});

index('no two routes have the same method and path', () => {
  const keys = routes.map(({ method, path, reach }) => `${method} ${reach} ${path}`);
  assert.is(new Set(keys).size, keys.length);
});

index.run();
