import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readPage, type PageRequest, type PageResult, type Seek } from '#store/pagination/page';

const page = suite('store/pagination/page');

const idOf = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const rows = Array.from({ length: 10 }, (_, n) => ({ id: idOf(n) }));

function read({ order, after, limit }: Seek): Promise<{ id: string }[]> {
  const ordered = order === 'asc' ? rows : rows.toReversed();
  const beyond = ordered.filter(
    ({ id }) => after === undefined || (order === 'asc' ? id > after : id < after),
  );
  return Promise.resolve(beyond.slice(0, limit));
}

const numbers = ({ content }: PageResult<{ id: string }>) =>
  content.map(({ id }) => Number(id.slice(-12)));
const first: PageRequest = { perPage: 4, direction: 'next', sort: 'DESC' };

page('pages lead forward to the end without a gap or a repetition', async () => {
  for (const sort of ['ASC', 'DESC'] as const) {
    const seen: number[] = [];
    let request: PageRequest = { ...first, sort };
    for (;;) {
      const found = await readPage(request, read);
      seen.push(...numbers(found));
      if (!found.hasNextPage) break;
      request = { ...request, cursor: found.nextPageCursor ?? undefined };
    }
    assert.equal(
      seen,
      sort === 'ASC' ? [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] : [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    );
  }
});

page('pages lead back the way they came', async () => {
  const one = await readPage(first, read);
  const two = await readPage({ ...first, cursor: one.nextPageCursor ?? undefined }, read);
  const three = await readPage({ ...first, cursor: two.nextPageCursor ?? undefined }, read);
  assert.equal([one, two, three].map(numbers), [
    [9, 8, 7, 6],
    [5, 4, 3, 2],
    [1, 0],
  ]);
  const back = await readPage(
    { ...first, direction: 'prev', cursor: three.prevPageCursor ?? undefined },
    read,
  );
  assert.equal(numbers(back), [5, 4, 3, 2]);
  const start = await readPage(
    { ...first, direction: 'prev', cursor: back.prevPageCursor ?? undefined },
    read,
  );
  assert.equal(numbers(start), [9, 8, 7, 6]);
});

page('the ends are told', async () => {
  const one = await readPage(first, read);
  assert.equal([one.hasPrevPage, one.prevPageCursor, one.hasNextPage], [false, null, true]);
  const last = await readPage({ ...first, perPage: 100 }, read);
  assert.equal([last.hasPrevPage, last.hasNextPage, last.nextPageCursor], [false, false, null]);
  const start = await readPage({ ...first, direction: 'prev', cursor: idOf(5) }, read);
  assert.equal(numbers(start), [9, 8, 7, 6]);
  assert.equal([start.hasPrevPage, start.prevPageCursor, start.hasNextPage], [false, null, true]);
});

page('an empty page leads back to the row of its cursor', async () => {
  const none = await readPage({ ...first, cursor: idOf(0) }, read);
  assert.equal([none.content.length, none.hasNextPage, none.hasPrevPage], [0, false, true]);
  const back = await readPage(
    { ...first, direction: 'prev', cursor: none.prevPageCursor ?? undefined },
    read,
  );
  assert.equal(numbers(back), [3, 2, 1, 0]);
});

page.run();
