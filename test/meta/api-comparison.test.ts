import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openApiDocument } from '#server/openapi/document';
import { routes } from '#server/routes/index';
import { read } from './house.js';

const comparison = suite('meta/api-comparison');
const PAGE = 'docs/reference/api-comparison.md';

function rows(): string[][] {
  const tables = read(PAGE).split('\n## What others have')[0]!;
  return tables
    .split('\n')
    .filter((line) => /`(GET|POST|PUT|DELETE) /.test(line))
    .map((line) => line.split('|').slice(1, -1));
}

/** Paths within a project are written without its prefix. */
function described(): string[] {
  const { paths } = openApiDocument(routes, { version: '', rootPath: '' });
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map(
      (method) =>
        `${method.toUpperCase()} ${path.replace(/^\/projects\/\{project_id\}(?=\/)/, '')}`,
    ),
  );
}

comparison(`each route of the OpenAPI document is once in ${PAGE}, and no other`, () => {
  const listed = rows().flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([A-Z]+ [^`]+)`/g)].map(([, route]) => route!),
  );
  const known = described();
  const fix = `add a new route to the row of its task in ${PAGE}`;
  assert.equal(
    known.filter((route) => !listed.includes(route)),
    [],
    fix,
  );
  assert.equal(
    listed.filter((route, at) => !known.includes(route) || listed.indexOf(route) !== at),
    [],
    fix,
  );
});

comparison('each row says something of each of the others', () => {
  assert.ok(rows().length > 30);
  const incomplete = rows().filter(
    (cells) => cells.length !== 7 || cells.some((cell) => cell.trim() === ''),
  );
  assert.equal(incomplete, []);
});

comparison.run();
