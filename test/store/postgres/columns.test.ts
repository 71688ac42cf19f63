import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { batchOf, clean } from '#store/postgres/columns';
import { migratedDatabase } from '../migrated.js';

const columns = suite('store/postgres/columns');

const db = await migratedDatabase();
columns.after(() => db.close());

const HEADERS = batchOf<{ headers: string | number | null }>([['headers', 'headers']]);

async function through(values: readonly (string | number | null)[]): Promise<(string | null)[]> {
  const { rows } = await db.pool.query<{ values: (string | null)[] }>(
    `select array(select headers from (${HEADERS.select()}) h) as values`,
    HEADERS.texts(values.map((headers) => ({ headers }))),
  );
  return rows[0]!.values;
}

columns('values arrive in Postgres as they are, in their order', async () => {
  const values = [
    'a',
    `it's "quoted"`,
    'back\\slash',
    'line\nbreak\ttab',
    '{1,2,null}',
    'NULL',
    'null',
    ' ',
    ',',
    '😀é',
    '\u2028',
    '\x7f',
    '$1',
    '%',
    '\\u0000',
    "E'\\x1e'",
    '\x1d',
    'x'.repeat(1_000_000),
  ];
  assert.equal(await through(values), values);
});

columns('numbers arrive as their digits', async () => {
  assert.equal(await through([0, -1, 1_700_000_000_000, 1.5]), ['0', '-1', '1700000000000', '1.5']);
});

columns('null arrives as null, and so does the empty text', async () => {
  assert.equal(await through([null]), [null]);
  assert.equal(await through(['']), [null]);
  assert.equal(await through([null, 'a', '', 'b', null]), [null, 'a', null, 'b', null]);
});

columns('a column without values is an empty list', async () => {
  assert.equal(await through([]), []);
});

columns('a thousand values stay a thousand', async () => {
  const values = Array.from({ length: 1000 }, (_, n) => (n % 3 === 0 ? null : `value ${n}`));
  assert.equal(await through(values), values);
});

columns(
  'text from outside is cleaned of the characters that no column can carry, every time',
  () => {
    for (let n = 0; n < 3; n++) {
      assert.is(clean('a\0b\x1ec\x1fd'), 'a\ufffdb\ufffdc\ufffdd');
      assert.is(clean('a'), 'a');
    }
    assert.is(clean('line\nbreak\t😀\x1d\x7f'), 'line\nbreak\t😀\x1d\x7f');
    const reasons = batchOf<{ reason: string; id: string }>([
      ['reason', 'reason'],
      ['id', 'id'],
    ]);
    assert.equal(reasons.texts([{ reason: 'a\0b\x1ec', id: 'd' }]), ['a\ufffdb\ufffdc', 'd']);
  },
);

columns('half of a surrogate pair, which is no text, does not hurt its neighbours', async () => {
  assert.equal(await through(['a\ud800', 'b']), ['a\ufffd', 'b']);
});

columns.run();
