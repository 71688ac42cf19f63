import type { QueryConfig } from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { eventCreator, type CreatedEvent, type Creation, type EventCreator } from '#store/events/create-events';
import type { EventRef } from '#store/events/event-ref';
import { deleteEndpoint } from '#store/config/endpoints';
import { makeEndpoint, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const creation = suite('store/events/create-events');

const db = await migratedDatabase();
creation.after(() => db.close());
const { id: projectId } = await makeProject(db);
const { id: otherId } = await makeProject(db);

const event = (fields: Partial<CreatedEvent> = {}): CreatedEvent => ({
  ...{
    projectId,
    eventType: 'order.paid',
    messageType: 'single',
    endpointId: null,
    ownerId: null,
    idempotencyKey: null,
    data: '{ "a": 1.10 }',
  },
  headers: { 'x-own': 'é' },
  ...fields,
});

interface Scene {
  readonly creator: EventCreator;
  /** The ids of each commit. */
  readonly commits: readonly (readonly string[])[];
  /** Names of the statements so far. */
  readonly statements: readonly string[];
}

function scene({ windowSeconds = 60, before }: { windowSeconds?: number; before?: (name: string) => Promise<void> } = {}): Scene {
  const [commits, statements]: [string[][], string[]] = [[], []];
  const pool = new Proxy(db.pool, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (property !== 'query') return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      return async (query: QueryConfig) => {
        statements.push(query.name ?? '');
        await before?.(query.name ?? '');
        return target.query(query);
      };
    },
  });
  const committed = (events: readonly EventRef[]) => void commits.push(events.map(({ id }) => id));
  return { creator: eventCreator({ pool, windowSeconds, committed }), commits, statements };
}

const idOf = (it: Creation) => ('id' in it ? it.id : it.unknown);
const stored = (ids: readonly string[]) =>
  db.rows<{ id: string; event_type: string; data: string; headers: string; status: string }>(
    `select id::text, event_type, data, headers, status::text from events where id = any ($1::uuid[]) order by id`,
    [ids],
  );

creation('events that arrive together are one statement, each with its own result', async () => {
  const { creator, commits, statements } = scene();
  const made = await Promise.all(
    Array.from({ length: 100 }, (_, n) => creator.create(event({ eventType: `t${n}`, projectId: n % 2 ? projectId : otherId }))),
  );
  assert.equal(statements, ['accept-events']);
  const rows = await stored(made.map(idOf));
  assert.is(rows.length, 100);
  made.forEach((it, n) => assert.is(rows.find(({ id }) => id === idOf(it))!.event_type, `t${n}`));
  assert.equal(rows[0], { ...rows[0]!, data: '{ "a": 1.10 }', headers: '{"x-own":"é"}', status: 'pending' });
  assert.equal(
    commits.map((ids) => [...ids].sort()),
    [made.map(idOf).sort()],
  );
});

creation('what arrives during commits waits for one of them, and is then committed together', async () => {
  let release!: () => void;
  const held = new Promise<void>((resolve) => (release = resolve));
  let count = 0;
  const { creator, commits } = scene({ before: () => (count++ < 2 ? held : Promise.resolve()) });
  const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  const all = [creator.create(event())];
  await turn();
  all.push(creator.create(event()));
  await turn();
  for (let n = 0; n < 700; n++) all.push(creator.create(event()));
  await turn();
  assert.is(count, 2, 'two commits at a time');
  release();
  await Promise.all(all);
  assert.equal(
    commits.map((ids) => ids.length).sort((a, b) => a - b),
    [1, 1, 200, 500],
  );
});

creation('of events with one key the first is created, also within a commit and beside another project', async () => {
  const { creator, commits } = scene();
  const keyed = (fields: Partial<CreatedEvent> = {}) => creator.create(event({ idempotencyKey: 'k1', ...fields }));
  const [first, second, foreign, free] = await Promise.all([keyed(), keyed(), keyed({ projectId: otherId }), creator.create(event())]);
  assert.equal(first, { id: idOf(first), duplicate: false });
  assert.equal(second, { id: idOf(first), duplicate: true });
  assert.equal(
    [foreign, free].map((it) => (it as { duplicate: boolean }).duplicate),
    [false, false],
  );
  assert.is(commits.flat().length, 3);
  const [third, another] = await Promise.all([keyed(), keyed({ idempotencyKey: 'k2' })]);
  assert.equal([third, (another as { duplicate: boolean }).duplicate], [{ id: idOf(first), duplicate: true }, false]);
  assert.is(commits.flat().length, 4, 'a duplicate is not signalled');
});

creation('a key that expires between two statements is free again', async () => {
  const { creator: before } = scene();
  const first = await before.create(event({ idempotencyKey: 'expiring' }));
  let isExpired = false;
  const { creator, statements } = scene({
    before: async (name) => {
      if (name !== 'events-of-keys' || isExpired) return;
      isExpired = true;
      await db.rows(`update idempotency_keys set expires_at = now() - interval '1 second' where key = 'expiring'`);
    },
  });
  const second = await creator.create(event({ idempotencyKey: 'expiring' }));
  assert.equal([(second as { duplicate: boolean }).duplicate, idOf(second) === idOf(first)], [false, false]);
  assert.equal(statements, ['accept-events', 'events-of-keys', 'accept-events']);
});

creation('an endpoint or an owner that the project does not have is told, and its neighbours are created', async () => {
  const endpoint = await makeEndpoint(db, projectId, { owner_id: 'ada' });
  const deleted = await makeEndpoint(db, projectId, { owner_id: 'bob' });
  await deleteEndpoint(db.knex, projectId, deleted.id);
  const { creator, statements, commits } = scene();
  const cases: Partial<CreatedEvent>[] = [
    { endpointId: endpoint.id },
    { messageType: 'fanout', ownerId: 'ada' },
    { endpointId: newId() },
    { endpointId: deleted.id },
    { endpointId: endpoint.id, projectId: otherId },
    { messageType: 'fanout', ownerId: 'bob' },
    { messageType: 'fanout', ownerId: 'ada', projectId: otherId },
    {},
  ];
  const made = await Promise.all(cases.map((fields) => creator.create(event(fields))));
  assert.equal(
    made.map((it) => ('unknown' in it ? it.unknown : it.duplicate)),
    [false, false, 'endpoint', 'endpoint', 'endpoint', 'owner', 'owner', false],
  );
  assert.equal(statements, ['find-targets', 'accept-events']);
  assert.is(commits.flat().length, 3);
});

creation('an event that Postgres rejects fails alone', async () => {
  const { creator, commits } = scene();
  const bad = event({ eventType: 'bad', data: '{"a":"\x00"}' });
  const results = await Promise.allSettled([event(), bad, event(), event({ endpointId: 'no uuid' })].map((it) => creator.create(it)));
  assert.equal(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'rejected'],
  );
  assert.is(commits.flat().length, 2);
});

creation('when Postgres is away every event of the commit is told, and later ones are created', async () => {
  let isAway = true;
  const { creator } = scene({
    before: () => (isAway ? Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' })) : Promise.resolve()),
  });
  const results = await Promise.allSettled([creator.create(event()), creator.create(event())]);
  assert.ok(results.every((it) => it.status === 'rejected' && (it.reason as Error).message === 'away'));
  isAway = false;
  assert.is(((await creator.create(event())) as { duplicate: boolean }).duplicate, false);
});

creation.run();
