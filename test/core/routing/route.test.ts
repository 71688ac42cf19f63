import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compileFilter } from '#core/events/filter';
import { needsMatching, routingOutcomes } from '#core/routing/outcomes';
import { matchesType, type RoutableEvent, route } from '#core/routing/route';
import {
  type RoutedEndpoint,
  type RoutedProject,
  routedProject,
  type RoutedSubscription,
} from '#core/routing/routed-project';

const routing = suite('core/routing/route');

const endpoint = (id: string, ownerId: string | null = null): RoutedEndpoint => ({ id, ownerId });

function subscription(
  id: string,
  endpointId: string,
  eventTypes: string[] = ['*'],
  { body, headers }: { body?: object; headers?: object } = {},
): RoutedSubscription {
  return {
    id,
    endpointId,
    eventTypes,
    body: body ? compileFilter(body as Record<string, unknown>) : null,
    headers: headers ? compileFilter(headers as Record<string, unknown>) : null,
  };
}

function project(
  endpoints: readonly RoutedEndpoint[],
  subscriptions: readonly RoutedSubscription[] = [],
): RoutedProject {
  const owners = new Map<string, RoutedEndpoint[]>();
  for (const one of endpoints)
    if (one.ownerId !== null) owners.set(one.ownerId, [...(owners.get(one.ownerId) ?? []), one]);
  return {
    endpoints: new Map(endpoints.map((one) => [one.id, one])),
    endpointsOfOwner: owners,
    subscriptions,
    subscriptionsOfType: new Map(),
  };
}

function event(fields: Partial<RoutableEvent> = {}, data: unknown = {}): RoutableEvent {
  return {
    eventType: 'order.paid',
    messageType: 'single',
    endpointId: null,
    ownerId: null,
    headers: {},
    data: JSON.stringify(data),
    ...fields,
  };
}

/** The outcome, then `endpoint` or `endpoint/subscription` for each delivery. */
function targetsOf(of: RoutedProject | undefined, what: RoutableEvent): string[] {
  const { outcome, targets } = route(of, what);
  return [
    outcome,
    ...targets.map(
      (target) =>
        target.endpoint.id + (target.subscriptionId === null ? '' : `/${target.subscriptionId}`),
    ),
  ];
}

const shop = project(
  [endpoint('a', 'x'), endpoint('b', 'x'), endpoint('c', 'y'), endpoint('d')],
  [subscription('s1', 'a'), subscription('s2', 'd', ['order.*'])],
);

routing('endpoint_id sends to that one endpoint, subscribed or not', () => {
  assert.equal(targetsOf(shop, event({ endpointId: 'c' })), ['routed', 'c']);
});

routing('owner_id sends to every endpoint of that owner', () => {
  assert.equal(targetsOf(shop, event({ ownerId: 'x' })), ['routed', 'a', 'b']);
  assert.equal(targetsOf(shop, event({ ownerId: 'y', messageType: 'fanout' })), ['routed', 'c']);
});

routing('endpoint_id wins over owner_id', () => {
  assert.equal(targetsOf(shop, event({ endpointId: 'c', ownerId: 'x' })), ['routed', 'c']);
  assert.equal(targetsOf(shop, event({ endpointId: 'nobody', ownerId: 'x' })), [
    'unknown_endpoint',
  ]);
});

routing('broadcast sends to all endpoints of the project and ignores both ids', () => {
  for (const ids of [
    {},
    { endpointId: 'c' },
    { ownerId: 'x' },
    { endpointId: 'nobody', ownerId: 'nobody' },
  ]) {
    assert.equal(targetsOf(shop, event({ ...ids, messageType: 'broadcast' })), [
      'routed',
      'a',
      'b',
      'c',
      'd',
    ]);
  }
});

routing('without ids the subscriptions decide, each with a delivery of its own', () => {
  assert.equal(targetsOf(shop, event()), ['routed', 'a/s1', 'd/s2']);
  assert.equal(targetsOf(shop, event({ eventType: 'invoice.sent' })), ['routed', 'a/s1']);
  const twice = project(
    [endpoint('a')],
    [subscription('s1', 'a'), subscription('s2', 'a', ['order.paid'])],
  );
  assert.equal(targetsOf(twice, event()), ['routed', 'a/s1', 'a/s2']);
});

routing('what nobody is to get is processed, and the outcome says why', () => {
  assert.equal(targetsOf(project([endpoint('a')]), event()), ['no_subscription']);
  assert.equal(targetsOf(project([]), event({ messageType: 'broadcast' })), ['no_endpoints']);
  assert.is(routingOutcomes.no_subscription.status, 'processed');
  assert.is(routingOutcomes.no_endpoints.status, 'processed');
});

routing(
  'an endpoint, owner or project that does not exist fails the event, and the outcome says which',
  () => {
    assert.equal(targetsOf(shop, event({ endpointId: 'nobody' })), ['unknown_endpoint']);
    assert.equal(targetsOf(shop, event({ ownerId: 'nobody' })), ['unknown_owner']);
    assert.equal(targetsOf(undefined, event()), ['unknown_project']);
    assert.equal(targetsOf(undefined, event({ messageType: 'broadcast' })), ['unknown_project']);
    for (const outcome of [
      'unknown_endpoint',
      'unknown_owner',
      'unknown_project',
      'filter_budget',
    ] as const)
      assert.is(routingOutcomes[outcome].status, 'failed');
  },
);

routing('names that every JavaScript object has are nobody', () => {
  for (const name of ['__proto__', 'constructor', 'toString']) {
    assert.equal(targetsOf(shop, event({ endpointId: name })), ['unknown_endpoint']);
    assert.equal(targetsOf(shop, event({ ownerId: name })), ['unknown_owner']);
  }
});

routing('a subscription whose endpoint was deleted matches nothing', () => {
  assert.equal(targetsOf(project([], [subscription('s', 'gone')]), event()), ['no_subscription']);
});

routing('event types match by name, by * and by a prefix that ends at a dot', () => {
  const cases: [pattern: string, type: string, matches: boolean][] = [
    ['*', 'anything', true],
    ['order.paid', 'order.paid', true],
    ['order.paid', 'order.paid.twice', false],
    ['order.paid', 'Order.Paid', false],
    ['order.*', 'order.paid', true],
    ['order.*', 'order.paid.twice', true],
    ['order.*', 'order', false],
    ['order.*', 'orders.paid', false],
    ['order.*', 'order.', true],
    ['order*', 'orders', false],
    ['*.paid', 'order.paid', false],
    ['.*', '.x', true],
    ['.*', 'x', false],
    ['o.der.*', 'order.paid', false],
  ];
  for (const [pattern, type, matches] of cases)
    assert.is(matchesType(pattern, type), matches, `${pattern} and ${type}`);
});

routing('filters on body and headers must both hold', () => {
  const filtered = project(
    [endpoint('a')],
    [
      subscription('s', 'a', ['*'], { body: { amount: { $gte: 10 } }, headers: { tenant: 'x' } }),
      subscription('t', 'a', ['*'], { body: { 'lines.0.sku': 'b' } }),
    ],
  );
  assert.equal(targetsOf(filtered, event({ headers: { tenant: 'x' } }, { amount: 10 })), [
    'routed',
    'a/s',
  ]);
  assert.equal(targetsOf(filtered, event({ headers: { tenant: 'y' } }, { amount: 10 })), [
    'no_subscription',
  ]);
  assert.equal(targetsOf(filtered, event({ headers: { tenant: 'x' } }, { amount: 9 })), [
    'no_subscription',
  ]);
  assert.equal(targetsOf(filtered, event({}, { lines: [{ sku: 'b' }] })), ['routed', 'a/t']);
});

routing('a filter on the message sees its key, place, attributes and headers', () => {
  const rows = [
    { topic: 'orders', offset: { $gte: 7 }, key: 'o-1' },
    { 'attributes.MessageGroupId': 'a' },
    { 'headers.x-a': '1' },
  ].map((message, at) => ({
    id: `s${at}`,
    endpoint_id: 'a',
    event_types: ['*'],
    filter: { message },
  }));
  const filtered = routedProject([endpoint('a')], rows, () => assert.unreachable());
  const of = { sourceId: 's', occurredAtMs: 1 };
  const kafka = { ...of, coordinates: 'orders/0/7', message: '{"key":"o-1"}' };
  const sqs = { ...of, coordinates: 'q/x', message: '{"attributes":{"MessageGroupId":"a"}}' };
  assert.equal(targetsOf(filtered, event(kafka)), ['routed', 'a/s0']);
  assert.equal(targetsOf(filtered, event({ ...kafka, coordinates: 'orders/0/6' })), [
    'no_subscription',
  ]);
  assert.equal(targetsOf(filtered, event(sqs)), ['routed', 'a/s1']);
  assert.equal(targetsOf(filtered, event({ headers: { 'x-a': '1' } })), ['routed', 'a/s2']);
});

routing('filters do not hold back what names its endpoints', () => {
  const filtered = project(
    [endpoint('a', 'x')],
    [subscription('s', 'a', ['none'], { body: { a: 1 } })],
  );
  assert.equal(targetsOf(filtered, event({ endpointId: 'a' })), ['routed', 'a']);
  assert.equal(targetsOf(filtered, event({ ownerId: 'x' })), ['routed', 'a']);
  assert.equal(targetsOf(filtered, event({ messageType: 'broadcast' })), ['routed', 'a']);
});

routing('the body is read only when a filter asks for it', () => {
  const unread = event({ data: 'parsing this throws' });
  assert.equal(targetsOf(shop, unread), ['routed', 'a/s1', 'd/s2']);
  const byHeaders = project(
    [endpoint('a')],
    [subscription('s', 'a', ['*'], { headers: { tenant: 'x' }, body: { a: 1 } })],
  );
  assert.equal(targetsOf(byHeaders, unread), ['no_subscription']);
});

const ENTRIES = Object.fromEntries(Array.from({ length: 60_000 }, (_, n) => [`k${n}`, n]));

routing('two thousand comparisons with an object of 60,000 members take no time', () => {
  const filter = { body: { a: { $in: Array.from({ length: 190 }, () => ({})) } } };
  const many = project(
    [endpoint('a')],
    Array.from({ length: 11 }, (_, n) => subscription(`s${n}`, 'a', ['*'], filter)),
  );
  const large = event({}, { a: ENTRIES });
  const before = process.cpuUsage();
  assert.equal(targetsOf(many, large), ['no_subscription']);
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < 1_000_000, `it took ${(user + system) / 1000} ms`);
});

routing('an event has one budget for all subscriptions, and fails when it is used up', () => {
  const one = subscription('s', 'a', ['*'], {
    body: { a: { $in: Array.from({ length: 190 }, () => ({})) } },
  });
  const many = (count: number) =>
    project(
      [endpoint('a')],
      [subscription('all', 'a'), ...Array.from({ length: count }, () => one)],
    );
  assert.equal(targetsOf(many(200), event({}, { a: ENTRIES })), ['routed', 'a/all']);
  assert.equal(targetsOf(many(600), event({}, { a: ENTRIES })), ['filter_budget']);
  assert.equal(targetsOf(many(600), event({ endpointId: 'a' }, { a: ENTRIES })), ['routed', 'a']);
});

routing('twenty thousand event types are routed as the first ones are', () => {
  const many = project(
    [endpoint('a')],
    [subscription('s', 'a', ['order.*']), subscription('t', 'a', ['order.19999'])],
  );
  for (let n = 0; n < 20_000; n++)
    assert.equal(targetsOf(many, event({ eventType: `order.${n}` })).slice(0, 2), [
      'routed',
      'a/s',
    ]);
  assert.equal(targetsOf(many, event({ eventType: 'order.19999' })), ['routed', 'a/s', 'a/t']);
  assert.ok(
    many.subscriptionsOfType.size <= 10_000,
    'what producers call their events does not fill the memory',
  );
  const thousand = project(
    [endpoint('a')],
    Array.from({ length: 1_000 }, (_, n) => subscription(`s${n}`, 'a')),
  );
  for (let n = 0; n < 1_000; n++) route(thousand, event({ eventType: `order.${n}` }));
  assert.is(thousand.subscriptionsOfType.size, 200, 'nor with many subscriptions');
});

routing('only what names no endpoint needs the match-subscriptions queue', () => {
  assert.ok(needsMatching(event()));
  assert.ok(needsMatching(event({ messageType: 'fanout' })));
  for (const fields of [
    { endpointId: 'a' },
    { ownerId: 'x' },
    { messageType: 'broadcast' as const },
  ])
    assert.not.ok(needsMatching(event(fields)));
});

routing(
  'operational events need a subscription that names them and an endpoint without an owner',
  () => {
    const made = project(
      [endpoint('all'), endpoint('ops'), endpoint('owned', 'acme')],
      [
        subscription('s1', 'all'),
        subscription('s2', 'ops', ['gateway.endpoint.*']),
        subscription('s3', 'owned', ['*', 'gateway.endpoint.disabled']),
      ],
    );
    assert.equal(targetsOf(made, event({ eventType: 'gateway.endpoint.disabled' })), [
      'routed',
      'ops/s2',
    ]);
    assert.equal(targetsOf(made, event({ eventType: 'gateway.test' })), [
      'routed',
      'all/s1',
      'owned/s3',
    ]);
  },
);

routing.run();
