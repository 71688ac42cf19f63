import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseSearch } from '#core/events/search';
import { listEvents, type EventFilter } from '#store/events/event-log';
import { replaySelected } from '#store/events/replay-events';
import type { SearchBudget } from '#store/pagination/search-log';
import { makeEvents, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const search = suite('store/pagination/search-log');

const db = await migratedDatabase();
search.after(() => db.close());

const NOW = Date.now();
/** Events of five days, oldest first: every tenth is of order 7. */
async function orders(count = 50): Promise<{ projectId: string; ids: string[] }> {
  const { id: projectId } = await makeProject(db);
  const events = Array.from({ length: count }, (_, n) => ({
    atMs: NOW - (count - n) * 9_000_000,
    eventType: n === 5 ? 'order.lost' : 'order.paid',
    status: n % 20 === 0 ? 'failed' : 'processed',
    // No id of an event contains an R.
    data: n === 11 ? '{"order":' : `{"order":{"id":${n % 10 === 0 ? 7 : 1000 + n},"ref":"R${n}"}}`,
  }));
  return { projectId, ids: await makeEvents(db, projectId, events) };
}

interface Read {
  readonly perPage?: number;
  readonly sort?: 'ASC' | 'DESC';
  readonly direction?: 'next' | 'prev';
  readonly cursor?: string | undefined;
  readonly budget?: SearchBudget;
  readonly filter?: EventFilter;
}

function read(projectId: string, text: string, { budget, filter, ...page }: Read = {}) {
  return listEvents(
    db.planes,
    projectId,
    { ...filter, search: parseSearch(text) },
    { perPage: 20, direction: 'next', sort: 'DESC', ...page },
    { budget },
  );
}
const idsOf = ({ content }: Awaited<ReturnType<typeof read>>) => content.map(({ id }) => id);

search(
  'finds events by a value, by words and with other filters, broken data included',
  async () => {
    const { projectId, ids } = await orders();
    const expected = [40, 30, 20, 10, 0].map((n) => ids[n]);
    const all = await read(projectId, 'data.order.id = 7');
    assert.equal(idsOf(all), expected);
    assert.equal([all.hasNextPage, all.searchedTo], [false, undefined]);
    const first = { perPage: 20, direction: 'next', sort: 'DESC' } as const;
    const listed = (await listEvents(db.planes, projectId, {}, first)).content;
    assert.equal(
      all.content[0],
      listed.find(({ id }) => id === ids[40]),
    );
    const text = 'data.order.id = 7';
    assert.equal(idsOf(await read(projectId, text, { sort: 'ASC' })), [...expected].reverse());
    const failed = await read(projectId, text, { filter: { status: 'failed' } });
    assert.equal(idsOf(failed), [ids[40], ids[20], ids[0]]);
    const from = new Date(NOW - 20 * 9_000_000);
    assert.equal(idsOf(await read(projectId, text, { filter: { from } })), [ids[40], ids[30]]);
    assert.equal(idsOf(await read(projectId, 'PAID R13')), [ids[13]]);
    assert.equal(idsOf(await read(projectId, ids[3]!.slice(0, 30))), [ids[3]]);
    assert.equal(idsOf(await read(projectId, 'order.lost')), [ids[5]]);
    assert.equal(idsOf(await read((await orders(1)).projectId, 'R13')), []);
  },
);

search('finds values and words whatever their spelling', async () => {
  const { id: projectId } = await makeProject(db);
  const data = [
    '{"n":1E2,"city":"M\\u00fcnchen"}',
    '{"n":100.0,"path":"a\\/b"}',
    '{"n":"100","note":"\\ud83d\\ude00 said \\"yes\\""}',
    '{"id":"3e45","n":7}',
    '{"http.status":200,"tags":["vip"]}',
  ];
  const ids = await makeEvents(
    db,
    projectId,
    data.map((it, n) => ({ atMs: NOW - n * 1000, eventType: 'a', status: 'processed', data: it })),
  );
  for (const [text, found] of [
    ['data.n = 100', [0, 1, 2]],
    ['München', [0]],
    ['a/b', [1]],
    ['"😀 said"', [2]],
    ['data.http.status = 200', [4]],
    ['data.http\\.status = 200 and data.tags = vip', [4]],
    ['data.tags != vip', [0, 1, 2, 3]],
  ] as const)
    assert.equal(idsOf(await read(projectId, text)).sort(), found.map((n) => ids[n]).sort(), text);
});

search('pages lead on and back', async () => {
  const { projectId, ids } = await orders();
  const text = 'data.order.id = 7';
  const first = await read(projectId, text, { perPage: 2 });
  assert.equal([idsOf(first), first.hasNextPage], [[ids[40], ids[30]], true]);
  const cursor = first.nextPageCursor!;
  const second = await read(projectId, text, { perPage: 2, cursor });
  assert.equal([idsOf(second), second.hasNextPage], [[ids[20], ids[10]], true]);
  const back = { perPage: 2, cursor: second.prevPageCursor!, direction: 'prev' } as const;
  assert.equal(idsOf(await read(projectId, text, back)), [ids[40], ids[30]]);
});

search('stops when its time is over, says how far it got, and goes on from there', async () => {
  const { projectId, ids } = await orders();
  const budget = { ms: 0, rows: 4, bytes: 1_000_000 };
  const found: string[] = [];
  let [cursor, steps] = [undefined as string | undefined, 0];
  for (;;) {
    const page = await read(projectId, 'data.order.id = 7', { budget, cursor });
    found.push(...idsOf(page));
    steps++;
    if (!page.hasNextPage) break;
    const last = ids[50 - 4 * steps]!;
    assert.is(page.nextPageCursor, last);
    assert.is(page.searchedTo?.getTime(), NOW - 4 * steps * 9_000_000);
    cursor = last;
  }
  assert.equal(
    found,
    [40, 30, 20, 10, 0].map((n) => ids[n]),
  );
  assert.is(steps, 13);
});

search('a statement reads no more bytes than its budget, and at least one row', async () => {
  const { projectId, ids } = await orders(5);
  const page = await read(projectId, 'data.missing', { budget: { ms: 0, rows: 100, bytes: 1 } });
  assert.equal([page.nextPageCursor, page.hasNextPage], [ids[4], true]);
});

search('a replay selects what a search finds', async () => {
  const { projectId } = await orders();
  let count = 0;
  const selection = { search: parseSearch('data.order.id = 7') };
  for await (const step of replaySelected(db.planes, projectId, selection, { dryRun: true }))
    count += step.count;
  assert.is(count, 5);
});

search.run();
