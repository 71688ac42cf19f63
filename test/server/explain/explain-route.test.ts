import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { explainRoute as explainFirst } from '#server/explain/explain-route';
import { filterMismatch } from '#core/routing/mismatch';
import type { RoutableEvent } from '#core/routing/route';
import { newId } from '#core/events/ids';
import type {
  NamedEndpoint,
  NamedSubscription,
  RoutingRecords,
} from '#store/config/routing-records';
import { compileFilter, FilterBudget } from '#core/events/filter';

const explain = suite('server/explain/explain-route');

const project_id = newId();
const explainRoute = (records: RoutingRecords, it: RoutableEvent, max = 100) =>
  explainFirst(records, it, max);

function endpoint(name: string, fields: Partial<NamedEndpoint> = {}): NamedEndpoint {
  return {
    id: newId(),
    name,
    url: 'https://example.com',
    owner_id: null,
    status: 'active',
    status_reason: null,
    ...fields,
  };
}

function subscription(
  name: string,
  endpoint_id: string,
  fields: Partial<NamedSubscription> = {},
): NamedSubscription {
  return {
    project_id,
    id: newId(),
    name,
    endpoint_id,
    event_types: ['*'],
    filter: null,
    updated_at: new Date(),
    is_disabled: false,
    deleted_at: null,
    ...fields,
  };
}

function records(
  endpoints: NamedEndpoint[],
  subscriptions: NamedSubscription[] = [],
  deleted_at: Date | null = null,
): RoutingRecords {
  return {
    project: { id: project_id, name: 'orders', type: 'outgoing', config: {}, deleted_at },
    endpoints,
    subscriptions,
  };
}

function event(fields: Partial<RoutableEvent> = {}, headers: Record<string, string> = {}) {
  const plain = { eventType: 'order.paid', data: '{"amount":50}', messageType: 'single' } as const;
  return { ...plain, ownerId: null, endpointId: null, headers, ...fields };
}

const shop = endpoint('shop', { owner_id: 'acme' });
const archive = endpoint('archive');

explain('the rule that applies is the one of routing', () => {
  const both = records([shop, archive]);
  const rules = [
    event({ messageType: 'broadcast', endpointId: shop.id }),
    event({ endpointId: archive.id, ownerId: 'acme' }),
    event({ ownerId: 'acme' }),
    event(),
  ].map((it) => explainRoute(both, it));
  assert.equal(
    rules.map(({ rule, outcome, targets }) => [
      rule,
      outcome,
      targets.map((it) => it.endpoint.name),
    ]),
    [
      ['broadcast', 'routed', ['shop', 'archive']],
      ['endpoint_id', 'routed', ['archive']],
      ['owner_id', 'routed', ['shop']],
      ['subscriptions', 'no_subscription', []],
    ],
  );
});

explain('a subscription that gets no operational events says why', () => {
  const subscriptions = [
    subscription('ops', archive.id, { event_types: ['gateway.*'] }),
    subscription('all', archive.id),
    subscription('owned', shop.id, { event_types: ['gateway.*'] }),
  ];
  const { subscriptions: explained } = explainRoute(
    records([shop, archive], subscriptions),
    event({ eventType: 'gateway.endpoint.disabled' }),
  );
  assert.equal(
    explained.map(({ mismatch }) => mismatch && 'sentence' in mismatch && mismatch.sentence),
    [
      null,
      'its event type * does not match operational events',
      'its endpoint has an owner, who gets no operational events',
    ],
  );
});

explain('each subscription that does not match says which part of it fails', () => {
  const gone = endpoint('gone');
  const subscriptions = [
    subscription('all', shop.id),
    subscription('refunds', shop.id, { event_types: ['refund.*'] }),
    subscription('large', archive.id, { filter: { body: { amount: { $gte: 100 } } } }),
    subscription('tenant', shop.id, { filter: { headers: { 'X-Tenant': 'b' } } }),
    subscription('broken', shop.id, { filter: { body: { amount: { $near: 1 } } } }),
    subscription('orphan', gone.id),
    subscription('old', shop.id, { deleted_at: new Date() }),
    subscription('off', shop.id, { is_disabled: true }),
  ];
  const { targets, subscriptions: explained } = explainRoute(
    records([shop, archive], subscriptions),
    event({}, { 'x-tenant': 'a' }),
  );
  assert.equal(
    targets.map((it) => [it.endpoint.name, it.subscription?.name]),
    [['shop', 'all']],
  );
  assert.equal(
    explained.map(({ subscription: { name }, mismatch }) => [name, mismatch?.part ?? 'matches']),
    [
      ['all', 'matches'],
      ['refunds', 'event_types'],
      ['large', 'body'],
      ['tenant', 'headers'],
      ['broken', 'filter'],
      ['orphan', 'endpoint'],
      ['old', 'deleted'],
      ['off', 'disabled'],
    ],
  );
  assert.equal(explained[2]?.mismatch, {
    part: 'body',
    path: 'amount',
    operator: '$gte',
    wanted: 100,
    found: 50,
  });
  assert.equal(explained[3]?.mismatch, {
    part: 'headers',
    path: 'x-tenant',
    operator: '$eq',
    wanted: 'b',
    found: 'a',
  });
});

explain('a subscription matches exactly when routing takes it', () => {
  const subscriptions = [
    subscription('a', shop.id, { filter: { body: { amount: 50 }, headers: {} } }),
    subscription('b', archive.id, {
      event_types: ['order.paid'],
      filter: { body: { $or: [{ amount: 1 }, { amount: 50 }] } },
    }),
    subscription('c', archive.id, { event_types: ['order'] }),
  ];
  const { targets, subscriptions: explained } = explainRoute(
    records([shop, archive], subscriptions),
    event(),
  );
  assert.equal(
    targets.map((it) => it.subscription?.id),
    explained.filter(({ mismatch }) => mismatch === null).map((it) => it.subscription.id),
  );
});

explain(
  'of any filter and any event it says that they match exactly when routing takes them',
  () => {
    let seed = 7;
    const pick = <T>(...of: readonly T[]): T =>
      of[(seed = (seed * 16807) % 2147483647) % of.length]!;
    const value = (): unknown =>
      pick<unknown>(1, 2, '1', 'a', true, null, [1], { b: 1 }, { b: { c: 'a' } });
    const operators = (): Record<string, unknown> =>
      pick<() => Record<string, unknown>>(
        () => ({ [pick('$eq', '$neq', '$gt', '$gte', '$lt', '$lte')]: value() }),
        () => ({ [pick('$in', '$nin')]: pick<unknown>([value(), value()], 'no list') }),
        () => ({ $exist: pick<unknown>(true, false, 'yes') }),
        () => ({ $gt: 0, $lt: pick(1, 2, 3) }),
        () => ({ $near: 1 }),
      )();
    const filter = (depth: number): Record<string, unknown> => {
      const inner = (): unknown =>
        depth > 0
          ? pick<(depth: number) => unknown>(filter, operators, value)(depth - 1)
          : pick<() => unknown>(operators, value)();
      const members = (): [string, unknown][] =>
        Array.from({ length: pick(0, 1, 1, 2) }, () => [pick('a', 'b', 'a.b', 'a.b.c'), inner()]);
      const several = () => Array.from({ length: pick(0, 1, 2) }, () => filter(depth - 1));
      return {
        ...Object.fromEntries(members()),
        ...(depth > 0 && pick(true, false) ? { [pick('$or', '$and')]: several() } : {}),
      };
    };
    const seen = {
      matches: 0,
      event_types: 0,
      headers: 0,
      body: 0,
      message: 0,
      filter: 0,
      endpoint: 0,
      disabled: 0,
      deleted: 0,
    };
    for (let round = 0; round < 2_000; round++) {
      const subscriptions = Array.from({ length: 3 }, () =>
        subscription('s', pick(shop.id, shop.id, archive.id, newId()), {
          event_types: pick(['*'], ['order.*'], ['order'], ['order.paid', 'x']),
          filter: pick(
            null,
            {},
            { body: filter(2) },
            { message: { 'headers.x-a': pick<unknown>('a', { $exist: false }) } },
            {
              body: filter(1),
              headers: { 'X-A': pick<unknown>('a', { $in: ['a', 'b'] }, { $exist: false }) },
            },
          ),
          is_disabled: pick(false, false, false, true),
          deleted_at: pick(null, null, null, new Date()),
        }),
      );
      const data = JSON.stringify({ a: value(), b: value() });
      const { targets, subscriptions: explained } = explainRoute(
        records([shop, archive], subscriptions),
        event(
          { eventType: pick('order.paid', 'order', 'orders'), data },
          pick<Record<string, string>>({}, { 'x-a': 'a' }, { 'x-a': 'c' }),
        ),
      );
      for (const { mismatch } of explained) seen[mismatch?.part ?? 'matches']++;
      assert.equal(
        targets.map((it) => it.subscription?.id),
        explained.filter(({ mismatch }) => mismatch === null).map((it) => it.subscription.id),
        JSON.stringify({ data, subscriptions, explained }),
      );
    }
    assert.ok(
      Object.values(seen).every((count) => count > 50),
      JSON.stringify(seen),
    );
  },
);

explain(
  'nothing goes anywhere in a project that is deleted, and none of its subscriptions is said to match',
  () => {
    const deleted = records([shop], [subscription('all', shop.id)], new Date());
    assert.is(explainRoute(deleted, event({ ownerId: 'acme' })).outcome, 'unknown_project');
    const { outcome, subscriptions } = explainRoute(deleted, event());
    assert.equal([outcome, subscriptions], ['unknown_project', []]);
  },
);

const order = { amount: 50, country: 'DE', customer: { tier: 'gold', tags: ['a'] } };

explain('a filter that matches has none', () => {
  assert.is(filterMismatch({ amount: { $gte: 50 }, 'customer.tier': 'gold' }, order), undefined);
  assert.is(filterMismatch({}, undefined), undefined);
});

explain(
  'the first member that fails is named with its path, what was wanted and what is there',
  () => {
    assert.equal(filterMismatch({ country: 'DE', amount: { $gte: 100 } }, order), {
      path: 'amount',
      operator: '$gte',
      wanted: 100,
      found: 50,
    });
    assert.equal(
      filterMismatch({ customer: { tier: { $in: ['silver'] } } }, order)?.path,
      'customer.tier',
    );
    assert.equal(filterMismatch({ 'customer.name': 'Ada' }, order), {
      path: 'customer.name',
      operator: '$eq',
      wanted: 'Ada',
      found: undefined,
    });
  },
);

explain('of $and the part that fails is named, of $or all of it', () => {
  assert.is(filterMismatch({ $and: [{ country: 'DE' }, { amount: 1 }] }, order)?.path, 'amount');
  const alternatives = [{ country: 'FR' }, { amount: 1 }];
  assert.equal(filterMismatch({ $or: alternatives }, order), {
    path: '',
    operator: '$or',
    wanted: alternatives,
    found: order,
  });
});

explain('it agrees with the compiled filter on every value', () => {
  const values = [
    order,
    null,
    undefined,
    'text',
    5,
    [],
    [1],
    {},
    { amount: null },
    { amount: '50' },
    { customer: [] },
  ];
  const filters: Record<string, unknown>[] = [
    { amount: 50 },
    { amount: { $neq: 50 } },
    { amount: { $exist: false } },
    { amount: null },
    { customer: {} },
    { customer: { tier: { $exist: true } } },
    { $or: [{ amount: 50 }, { country: { $nin: ['DE'] } }] },
    { $eq: 'text' },
  ];
  for (const filter of filters)
    for (const value of values)
      assert.is(
        filterMismatch(filter, value) === undefined,
        compileFilter(filter)(value, new FilterBudget()),
        JSON.stringify([filter, value]),
      );
});

explain('only so many subscriptions are explained, those that match first', () => {
  const many = [
    ...Array.from({ length: 5_000 }, (_, n) =>
      subscription(`not ${n}`, archive.id, { event_types: ['refund'] }),
    ),
    subscription('matches', shop.id),
  ];
  const { subscriptions, targets } = explainRoute(records([shop, archive], many), event(), 3);
  assert.equal(
    [subscriptions.map((it) => it.subscription.name), targets.length],
    [['matches', 'not 0', 'not 1'], 1],
  );
});

explain('filters that compare much do not hold up who explains them', () => {
  const data = JSON.stringify({
    a: Object.fromEntries(Array.from({ length: 60_000 }, (_, n) => [`k${n}`, n])),
  });
  const slow = { filter: { body: { a: { $in: Array.from({ length: 190 }, () => ({})) } } } };
  const many = Array.from({ length: 100 }, (_, n) => subscription(`slow ${n}`, shop.id, slow));
  const { subscriptions } = explainRoute(records([shop], many), event({ data }), 100);
  assert.ok(subscriptions.length < 30, `${subscriptions.length} were explained`);
});

explain.run();
