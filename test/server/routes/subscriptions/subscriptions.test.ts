import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { makeProject, mistakes, startApi, type Api } from '../../api.js';
import { readSnapshot } from '../../../store/made.js';

const subscriptions = suite('server/routes/subscriptions/subscriptions');

let api: Api;
let path: string;
let endpointId: string;
subscriptions.before(async () => {
  api = await startApi();
  ({ path } = await makeProject(api));
  endpointId = (
    await api.call('POST', `${path}/endpoints`, { name: 'shop', url: 'https://example.com' })
  ).body.data.uid;
});
subscriptions.after(() => api.close());

const create = (fields: Record<string, unknown> = {}) =>
  api.call('POST', `${path}/subscriptions`, { name: 'all', endpoint_id: endpointId, ...fields });

subscriptions('a subscription is for every event type unless it names some', async () => {
  const { status, body } = await create();
  assert.is(status, 201);
  assert.equal(body.data.filter_config, { event_types: ['*'], filter: { headers: {}, body: {} } });
  assert.equal(
    (await api.call('GET', `${path}/subscriptions/${body.data.uid}`)).body.data,
    body.data,
  );
});

subscriptions(
  'fields of similar APIs that change nothing are ignored and named, others are refused',
  async () => {
    const foreign = {
      alert_config: { count: 4 },
      retry_config: { type: 'linear' },
      source_id: null,
    };
    const { status, body } = await create(foreign);
    assert.equal(
      [status, body.message],
      [201, 'subscription created; ignored: alert_config, retry_config, source_id'],
    );
    const changed = await api.call('PUT', `${path}/subscriptions/${body.data.uid}`, {
      name: 'renamed',
      ...foreign,
    });
    assert.equal([changed.status, changed.body.data.name], [200, 'renamed']);
    assert.equal(mistakes(await create({ ...foreign, alert_confg: {} })), [
      'alert_confg is not a field here',
    ]);
    assert.equal(mistakes(await create({ filter_config: { alert_config: {} } })), [
      'filter_config.alert_config is not a field here',
    ]);
    assert.is((await api.call('GET', `${path}/subscriptions?page=3&perPage=1`)).status, 200);
  },
);

subscriptions('what agents read is what was set', async () => {
  const filter = {
    body: { amount: { $gte: 100 }, $or: [{ country: 'DE' }, { country: 'FR' }] },
    headers: { 'x-tenant': 'acme' },
  };
  const { body } = await create({ filter_config: { event_types: ['order.*', 'refund'], filter } });
  const { subscriptions: read } = await readSnapshot(api.db.pool);
  const record = read.find(({ id }) => id === body.data.uid);
  assert.equal(
    [record?.event_types, record?.filter, record?.endpoint_id],
    [['order.*', 'refund'], filter, endpointId],
  );
});

subscriptions(
  'a disabled subscription is not read by agents until it is enabled again',
  async () => {
    const { uid } = (await create()).body.data;
    const isRead = async () =>
      (await readSnapshot(api.db.pool)).subscriptions.some(({ id }) => id === uid);
    const toggle = () => api.call('PUT', `${path}/subscriptions/${uid}/toggle_status`);
    assert.is(await isRead(), true);
    const off = await toggle();
    assert.equal(
      [off.status, off.body.message, off.body.data.is_disabled, await isRead()],
      [200, 'subscription disabled', true, false],
    );
    const on = await toggle();
    assert.equal(
      [on.body.message, on.body.data.is_disabled, await isRead()],
      ['subscription enabled', false, true],
    );
    assert.is(
      (await api.call('PUT', `${path}/subscriptions/${uid}`, { is_disabled: true })).body.data
        .is_disabled,
      true,
    );
    assert.is((await create({ is_disabled: true })).body.data.is_disabled, true);
    assert.is(
      (await api.call('PUT', `${path}/subscriptions/${newId()}/toggle_status`)).status,
      404,
    );
  },
);

subscriptions('a change touches what is given', async () => {
  const { uid } = (
    await create({ filter_config: { event_types: ['a'], filter: { body: { a: 1 } } } })
  ).body.data;
  const { body } = await api.call('PUT', `${path}/subscriptions/${uid}`, {
    filter_config: { event_types: ['b'] },
  });
  assert.equal(
    [body.data.name, body.data.filter_config.event_types, body.data.filter_config.filter.body],
    ['all', ['b'], { a: 1 }],
  );
  const emptied = await api.call('PUT', `${path}/subscriptions/${uid}`, {
    filter_config: { filter: {} },
  });
  assert.equal(emptied.body.data.filter_config.filter, { headers: {}, body: {} });
});

subscriptions(
  'a function is kept as it is, agents are told of its changes, and null or a blank text removes it',
  async () => {
    const text = 'function transform({ amount }) { return { amount }; }';
    const created = await create({ function: text });
    assert.equal([created.status, created.body.data.function], [201, text]);
    const { uid } = created.body.data;
    const version = async () =>
      (await readSnapshot(api.db.pool)).subscriptions.find(({ id }) => id === uid)
        ?.function_version;
    const first = await version();
    assert.type(first, 'string');
    const change = async (fields: Record<string, unknown>) =>
      (await api.call('PUT', `${path}/subscriptions/${uid}`, fields)).body.data;
    assert.is((await change({ name: 'renamed' })).function, text);
    assert.is((await change({ function: `${text}\n` })).function, `${text}\n`);
    assert.is.not(await version(), first);
    assert.is((await change({ function: ' \n' })).function, null);
    assert.is(await version(), null);
    await change({ function: text });
    assert.is((await change({ function: null })).function, null);
  },
);

subscriptions('a function that cannot be is refused with its line', async () => {
  assert.match(
    mistakes(await create({ function: 'function transform(p) {\n  return p +;\n}' }))[0]!,
    /^function does not compile: .* on line 2$/,
  );
  assert.match(
    mistakes(await create({ function: 'const x = 1;' }))[0]!,
    /^function has no function named transform/,
  );
  assert.match(
    mistakes(await create({ function: `function transform() {}${' '.repeat(50_000)}` }))[0]!,
    /^function/,
  );
});

subscriptions('mistakes are listed with their places', async () => {
  const other = await makeProject(api);
  const foreign = (
    await api.call('POST', `${other.path}/endpoints`, { name: 'x', url: 'https://example.com' })
  ).body.data.uid;
  for (const id of [newId(), foreign])
    assert.equal(mistakes(await create({ endpoint_id: id })), [
      'endpoint_id is not an endpoint of this project',
    ]);
  assert.equal(
    mistakes(await create({ filter_config: { event_types: ['*.paid', 'order*', 'a\nb'] } })),
    ['filter_config.event_types.2 must not contain control characters'],
  );
  assert.equal(
    mistakes(
      await create({ filter_config: { event_types: ['*.paid', 'order*', 'order.*', '*'] } }),
    ),
    [
      'filter_config.event_types.0 may have * alone or at the end after a dot, as in order.*',
      'filter_config.event_types.1 may have * alone or at the end after a dot, as in order.*',
    ],
  );
  assert.equal(mistakes(await create({ filter_config: { event_types: [] } })), [
    'filter_config.event_types must not be empty',
  ]);
  assert.match(
    mistakes(await create({ filter_config: { filter: { body: { a: { $regex: '.*' } } } } })).join(),
    /filter_config\.filter\.body \$regex is not an operator/,
  );
  assert.match(
    mistakes(await create({ filter_config: { filter: { headers: { $or: 1 } } } })).join(),
    /filter_config\.filter\.headers \$or takes a list/,
  );
});

subscriptions(
  'a filter is refused beyond 16 KB, 200 nodes or 20 levels, with the number and the bound',
  async () => {
    const refused = async (part: 'headers' | 'body', filter: object) =>
      mistakes(await create({ filter_config: { filter: { [part]: filter } } })).join();
    const nested = (depth: number): object => (depth === 0 ? {} : { a: nested(depth - 1) });
    assert.match(
      await refused('body', { a: 'x'.repeat(16_384) }),
      /filter\.body The filter has 16392 bytes of JSON; at most 16384/,
    );
    assert.match(
      await refused('body', { a: { $in: Array(200).fill({}) } }),
      /filter\.body The filter has 202 nodes or more; at most 200/,
    );
    assert.match(
      await refused('headers', { $or: Array(101).fill({ a: 1 }) }),
      /filter\.headers The filter has 202 nodes or more/,
    );
    assert.match(
      await refused('body', nested(20)),
      /filter\.body The filter nests objects or lists 21 deep or more; at most 20/,
    );
    const { uid } = (await create()).body.data;
    const changed = await api.call('PUT', `${path}/subscriptions/${uid}`, {
      filter_config: { filter: { body: { a: 'x'.repeat(16_384) } } },
    });
    assert.is(changed.status, 422);
  },
);

subscriptions(
  'a project has so many subscriptions, endpoints and sources as it may, also when requests come at once',
  async () => {
    const limits = {
      endpoints_per_project: 3,
      subscriptions_per_project: 2,
      sources_per_project: 1,
    };
    const few = await startApi({ file: { limits } });
    try {
      const { path: own } = await makeProject(few);
      const endpoint = { name: 'shop', url: 'https://example.com' };
      const { uid } = (await few.call('POST', `${own}/endpoints`, endpoint)).body.data;
      const sqs = {
        queue_name: 'q',
        default_region: 'eu-west-1',
        access_key_id: 'a',
        secret_key: 'b',
      };
      const bodies = {
        endpoints: endpoint,
        subscriptions: { name: 'all', endpoint_id: uid },
        'sources?skip_check=true': { name: 'q', type: 'pub_sub', pub_sub: { type: 'sqs', sqs } },
      };
      for (const [name, body] of Object.entries(bodies)) {
        const answers = await Promise.all(
          Array.from({ length: 8 }, () => few.call('POST', `${own}/${name}`, body)),
        );
        const made = answers.filter(({ status }) => status === 201);
        const refused = answers.filter(({ status }) => status === 422);
        assert.equal(
          [made.length, refused.length],
          name.startsWith('sources') ? [1, 7] : [2, 6],
          JSON.stringify(answers[0]?.body),
        );
        const { code, message, fix } = refused[0]!.body;
        assert.is(code, 'project_full');
        const [things = ''] = name.split('?');
        const max = limits[`${things}_per_project` as keyof typeof limits];
        assert.is(
          message,
          `the project has ${max} ${things}, and limits.${things}_per_project allows no more`,
        );
        assert.match(fix ?? '', `delete ${things}`);
      }
      const [first] = (await few.call('GET', `${own}/subscriptions`)).body.data.content;
      await few.call('DELETE', `${own}/subscriptions/${first.uid}`);
      assert.is(
        (await few.call('POST', `${own}/subscriptions`, bodies.subscriptions)).status,
        201,
        'what is deleted makes room',
      );
      const other = await makeProject(few);
      assert.is(
        (await few.call('POST', `${other.path}/endpoints`, endpoint)).status,
        201,
        'another project has bounds of its own',
      );
    } finally {
      await few.close();
    }
  },
);

subscriptions('subscriptions are listed by endpoint, and gone when deleted', async () => {
  const { uid: second } = (
    await api.call('POST', `${path}/endpoints`, { name: 'bank', url: 'https://example.com' })
  ).body.data;
  const { uid } = (await create({ endpoint_id: second })).body.data;
  const list = async () =>
    (await api.call('GET', `${path}/subscriptions?endpointId=${second}`)).body.data.content.map(
      (it: { uid: string }) => it.uid,
    );
  assert.equal(await list(), [uid]);
  assert.is((await api.call('DELETE', `${path}/subscriptions/${uid}`)).status, 200);
  assert.is((await api.call('DELETE', `${path}/subscriptions/${uid}`)).status, 404);
  assert.is((await api.call('PUT', `${path}/subscriptions/${uid}`, { name: 'x' })).status, 404);
  assert.equal(await list(), []);
});

subscriptions('subscriptions are found by a part of their name', async () => {
  await create({ name: '100% of Refunds_eu' });
  const found = async (q: string) =>
    (
      await api.call('GET', `${path}/subscriptions?q=${encodeURIComponent(q)}`)
    ).body.data.content.map((it: { name: string }) => it.name);
  assert.equal(await found('refunds'), ['100% of Refunds_eu']);
  assert.equal(await found('100% '), ['100% of Refunds_eu']);
  assert.equal(
    [await found('_eu'), await found('s_e'), await found('f%R')],
    [['100% of Refunds_eu'], ['100% of Refunds_eu'], []],
  );
  assert.is((await api.call('GET', `${path}/subscriptions?q=%00`)).status, 422);
});

subscriptions.run();
