import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { eventId, newId } from '#core/events/ids';
import { quarantineMessages } from '#store/quarantine/messages';
import { selectQuarantined } from '#store/quarantine/selection';
import { insertSource } from '#store/config/sources';
import { makeProject, startApi, type Api } from '../api.js';

const quarantine = suite('server/routes/quarantine-batch');

let api: Api;
quarantine.before(async () => {
  api = await startApi();
});
quarantine.after(() => api.close());

const GOOD = '{"event_type":"order.paid","data":{"n":1}}';

async function setUp(raws: readonly string[], body_function: string | null = null) {
  const { path, id: projectId } = await makeProject(api);
  const { id: sourceId } = await insertSource(api.db.knex, projectId, {
    name: 'orders',
    type: 'pub_sub',
    pub_sub: { type: 'kafka', kafka: { brokers: ['localhost:1'], topic: 't' } },
    body_function,
    is_disabled: true,
  });
  const atMs = Date.UTC(2026, 10, 1);
  const rows = raws.map((raw, n) => ({
    projectId,
    id: eventId(sourceId, `t/0/${n}`, atMs + n),
    sourceId,
    occurredAtMs: atMs + n,
    coordinates: `t/0/${n}`,
    code: n % 2 === 0 ? 'not_json' : 'transform_threw',
    reason: 'It was.',
    headers: '{}',
    raw: Buffer.from(raw),
  }));
  await quarantineMessages(api.db.pool, rows);
  const post = async (route: string) =>
    (await api.call('POST', `${path}/quarantine/${route}startDate=2026-10-01`)).body.data;
  const statuses = async () =>
    (
      await api.db.rows<{ status: string }>(
        'select status from quarantined_messages where project_id = $1 order by id',
        [projectId],
      )
    ).map(({ status }) => status);
  return { path, projectId, ids: rows.map(({ id }) => id), post, statuses };
}

quarantine(
  'a message is replayed with the function of its source, and its event is signalled',
  async () => {
    const { path, ids } = await setUp(
      ['{"total":5}'],
      'function transform(p) { return { event_type: "order", data: p }; }',
    );
    const queue = api.kv.queue('create-event');
    const before = await queue.depth();
    const dry = await api.call('PUT', `${path}/quarantine/${ids[0]}/replay?dry_run=true`);
    assert.equal(
      [dry.status, dry.body.data.outcome, dry.body.data.event_ids],
      [200, 'accepted', [ids[0]]],
    );
    const { status, body } = await api.call('PUT', `${path}/quarantine/${ids[0]}/replay`);
    assert.equal(
      [status, body.data],
      [200, { uid: ids[0], outcome: 'replayed', event_ids: [ids[0]], code: null, reason: null }],
    );
    const event = (await api.call('GET', `${path}/events/${ids[0]}`)).body.data;
    assert.equal([event.event_type, event.data], ['order', { total: 5 }]);
    assert.is(await queue.depth(), before + 1);
    const again = await api.call('PUT', `${path}/quarantine/${ids[0]}/replay`);
    assert.equal([again.status, again.body.message], [409, 'the message is already replayed']);
  },
);

quarantine('a message that is still refused stays with the new reason', async () => {
  const { path, ids, statuses } = await setUp(
    ['{"total":5}'],
    'function transform() { throw new Error("no"); }',
  );
  const { data } = (await api.call('PUT', `${path}/quarantine/${ids[0]}/replay`)).body;
  assert.equal(
    [data.outcome, data.code, /no/.test(data.reason), await statuses()],
    ['refused', 'transform_threw', true, ['quarantined']],
  );
  assert.is(
    (await api.call('GET', `${path}/quarantine/${ids[0]}`)).body.data.code,
    'transform_threw',
  );
  assert.is((await api.call('PUT', `${path}/quarantine/${newId()}/replay`)).status, 404);
});

quarantine(
  'those that a filter selects are replayed, after a dry run that changes nothing',
  async () => {
    const { post, statuses } = await setUp([GOOD, GOOD, '{', GOOD, '{"event_type":1}']);
    const dry = await post('batchreplay?dry_run=true&');
    assert.equal(
      [dry.replayed, dry.refused, dry.next, dry.progress, dry.dry_run],
      [3, 2, null, 1, true],
    );
    assert.equal(await statuses(), Array<string>(5).fill('quarantined'));
    const some = await post('batchreplay?code=transform_threw&');
    assert.equal([some.replayed, some.refused], [2, 0]);
    assert.equal(await statuses(), [
      'quarantined',
      'replayed',
      'quarantined',
      'replayed',
      'quarantined',
    ]);
    const rest = await post('batchreplay?');
    assert.equal([rest.replayed, rest.refused, rest.changed], [1, 2, 0]);
    const none = await post(`batchreplay?sourceId=${newId()}&`);
    assert.equal([none.replayed, none.refused, none.next], [0, 0, null]);
  },
);

quarantine(
  'those that a filter selects are discarded, after a dry run that changes nothing',
  async () => {
    const { path, post, ids, statuses } = await setUp(['{', '{', '{', '{']);
    assert.is((await post('batchdiscard?dry_run=true&')).count, 4);
    assert.equal(await statuses(), Array<string>(4).fill('quarantined'));
    const { count, next, progress } = await post(`batchdiscard?after=${ids[0]}&code=not_json&`);
    assert.equal([count, next, progress], [1, null, 1]);
    assert.equal(await statuses(), ['quarantined', 'quarantined', 'discarded', 'quarantined']);
    assert.is(
      (await api.call('POST', `${path}/quarantine/batchdiscard`)).status,
      422,
      'without a start it is not said what is meant',
    );
    assert.is((await post('batchdiscard?endDate=2026-10-15&')).count, 0);
    assert.is((await post('batchdiscard?')).count, 3);
  },
);

quarantine('messages are selected in steps, whether or not a step finds any', async () => {
  const { projectId, ids } = await setUp(['{', '{', '{', '{', '{']);
  const steps = [];
  for await (const step of selectQuarantined(
    api.db.pool,
    projectId,
    { from: new Date(0), code: 'not_json' },
    2,
  ))
    steps.push(step);
  assert.equal(
    steps.map((it) => [it.ids, it.next]),
    [
      [[ids[0]], ids[1]],
      [[ids[2]], ids[3]],
      [[ids[4]], null],
    ],
  );
});

quarantine.run();
