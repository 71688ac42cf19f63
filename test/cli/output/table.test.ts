import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { textBlocks, textTable } from '#cli/output/table';

const table = suite('cli/output/table');

table('columns are as wide as their widest cell', () => {
  assert.is(
    textTable([
      ['NAME', 'STATE', 'TEXT'],
      ['a', 'off', 'one'],
      ['longer', 'on', 'two words'],
    ]),
    'NAME    STATE  TEXT\na       off    one\nlonger  on     two words',
  );
});

table('the last column is wrapped to the width and stays below itself', () => {
  assert.is(
    textTable(
      [
        ['A', 'TEXT'],
        ['x', 'some words that are too many'],
      ],
      25,
    ),
    'A  TEXT\nx  some words that are\n   too many',
  );
});

table('a word that is too long is not cut', () => {
  assert.match(
    textTable(
      [
        ['A', 'TEXT'],
        ['x', 'https://example.com/a/very/long/path'],
      ],
      20,
    ),
    'https://example.com/a/very/long/path',
  );
});

table('a table may have a hundred thousand rows', () => {
  const rows = [['A', 'B'], ...Array.from({ length: 200_000 }, () => ['a', 'b'])];
  assert.is(textTable(rows, 80).length, rows.length * 5 - 1);
});

table('blocks have each head before its cell', () => {
  const rows = [
    ['evt_1', 'some words'],
    ['evt_2', ''],
  ];
  assert.is(textBlocks(['ID', 'TEXT'], rows), 'ID    evt_1\nTEXT  some words\n\nID    evt_2\nTEXT');
});

table.run();
