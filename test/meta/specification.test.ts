import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { read } from './house.js';

const specification = suite('meta/specification');

const page = read('docs/reference/specification.md');

/** The rows of the comparison tables, without headers. */
const rows = page
  .slice(page.indexOf('\n## '))
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| Specified |'))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, specified = '', here = '', why = '']) => ({ specified, here, why }));

specification(
  'each row of the specification says what we do, and a row that departs from it says why',
  () => {
    assert.ok(rows.length > 210, `${rows.length} rows`);
    assert.equal(
      rows.filter(({ here }) => here === '').map(({ specified }) => specified),
      [],
    );
    const isOpen = (specified: string) =>
      /not (shown|listed|exhaustive)|no default|Stale values/.test(specified);
    assert.equal(
      rows
        .filter(
          ({ specified, here, why }) => !here.startsWith('Met') && why === '' && !isOpen(specified),
        )
        .map(({ specified }) => specified),
      [],
    );
  },
);

for (const [what, pattern, tables] of [
  [
    'flag',
    /--[a-z][\w-]*[a-z](?![\w-]|…)/g,
    ['docs/reference/cli.md', 'docs/reference/configuration.md'],
  ],
  ['variable', /\b(?:GATEWAY_[A-Z_]+|(?:AGENT_)?PORT)\b/g, ['docs/reference/configuration.md']],
  ['series', /\bgateway_[a-z_]+\b/g, ['docs/reference/metrics.md']],
  [
    'span',
    /\b(?:dynamic\.)?event\.(?:creation|subscription)\.[a-z.]+\b/g,
    ['docs/reference/spans.md'],
  ],
] as const) {
  specification(`every ${what} that the page names is one of the gateway`, () => {
    const known = tables
      .map(read)
      .join('\n')
      .replaceAll(/--\[no-\]([\w-]+)/g, '--$1 --no-$1');
    const named = [...new Set(page.match(pattern))];
    assert.ok(named.length > 3, `${named.length}`);
    assert.equal(
      named.filter((name) => !new RegExp(`${name}(?![\\w-])`).test(known)),
      [],
    );
  });
}

specification.run();
