import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { textTable } from '@gateway/cli/text-table';

const table = suite('cli/text-table');

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

table.run();
