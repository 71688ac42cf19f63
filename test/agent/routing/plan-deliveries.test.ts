import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ConfigCache } from '#ingest/routing/config-cache';
import type { Endpoint, Project } from '#ingest/routing/project';
import { TokenBuckets } from '#core/process/token-buckets';
import { DeliveryPlanner } from '#agent/routing/plan-deliveries';
import { BODY_AT_ONCE_MAX } from '#ingest/routing/matcher';
import { type RoutableEvent, route } from '#core/routing/route';
import { routedProject } from '#core/routing/routed-project';
import { cachedEndpoint } from '../records.js';

const routing = suite('agent/routing/plan-deliveries');

const OPTIONS: ConstructorParameters<typeof DeliveryPlanner>[0] = {
  configCache: { projects: new Map() } as unknown as ConfigCache,
  lease: { agentId: 1 },
  inFlight: {
    room: 1,
    isBusy: () => false,
    onRecorded: () => undefined,
    add: () => undefined,
    reserve: () => undefined,
    cancel: () => undefined,
  },
  gates: { ask: () => undefined, postpone: () => 0 },
  dueTimes: { add: () => undefined },
  routingPace: new TokenBuckets(0),
  batchSize: 1,
  claimsFirstAttempts: true,
};

const endpoint = (id: string, fields: Partial<Endpoint> = {}) =>
  cachedEndpoint({ projectId: 'p', id, ...fields });

routing(
  'a paused or inactive endpoint is a target like others: its delivery row says what became of it',
  () => {
    const endpoints = [endpoint('a', { status: 'paused' }), endpoint('b', { status: 'inactive' })];
    const resting = routedProject(
      endpoints,
      [{ id: 's', endpoint_id: 'a', event_types: ['*'], filter: null }],
      () => undefined,
    );
    const event = {
      eventType: 'a',
      messageType: 'single',
      endpointId: null,
      ownerId: null,
      headers: {},
      data: '{}',
    } as const;
    const targetsOf = (fields: object) =>
      route(resting, { ...event, ...fields }).targets.map((it) => it.endpoint.id);
    assert.equal(targetsOf({ messageType: 'broadcast' }), ['a', 'b']);
    assert.equal(targetsOf({ endpointId: 'b' }), ['b']);
    assert.equal(targetsOf({}), ['a']);
  },
);

routing(
  'a delivery is claimed while there is room for it; at a paused endpoint it is held, and at an inactive one discarded',
  () => {
    const id = (last: number) => `019ab3c4-0000-7000-8000-00000000001${last}`;
    const reserved = new Set<string>();
    const sent: string[] = [];
    const planner = new DeliveryPlanner({
      ...OPTIONS,
      inFlight: {
        ...OPTIONS.inFlight,
        add: (deliveries) => void sent.push(...deliveries.map((one) => one.endpointId)),
        reserve: ({ endpointId }) => void reserved.add(endpointId),
        cancel: (deliveries) => deliveries.forEach((one) => reserved.delete(one.endpointId)),
      },
      gates: {
        ask: (_question, endpoint) =>
          endpoint?.id === id(4) ? { answer: 'keep', gate: 'room' } : undefined,
        postpone: () => 0,
      },
    });
    const plan = planner.planWithin(2);
    const event = {
      projectId: '019ab3c4-0000-7000-8000-000000000001',
      id: '019ab3c4-0000-8000-8000-000000000002',
      occurredAtMs: 0,
      eventType: 'order.paid',
      sourceId: null,
      headers: {},
      data: '{}',
    };
    const targets = [
      endpoint(id(1), { status: 'paused' }),
      endpoint(id(2), { status: 'inactive' }),
      ...[3, 4, 5, 6].map((n) => endpoint(id(n))),
    ];
    plan.add(
      event,
      targets.map((it) => ({ endpoint: it, subscriptionId: null })),
    );
    assert.equal(
      plan.deliveries.map(({ status, dueInMs }) => [status, dueInMs]),
      [
        ['scheduled', Infinity],
        ['discarded', 0],
        ['processing', 0],
        ['scheduled', 0],
        ['processing', 0],
        ['scheduled', 0],
      ],
    );
    assert.equal([...reserved], [id(3), id(5)]);
    plan.handOver((_eventId, deliveryId) => deliveryId === plan.deliveries[2]!.id);
    assert.equal(sent, [id(3)]);
    assert.equal([...reserved], [id(3)], 'what was not new takes no room');
    plan.drop();
    assert.is(reserved.size, 0);
  },
);

const planning = (perSecond = 0) =>
  new DeliveryPlanner({ ...OPTIONS, routingPace: new TokenBuckets(perSecond) });

/** A project with one endpoint, `a`, and a subscription with a filter per event type. */
function filtered(
  filters: Readonly<
    Record<string, { body?: Record<string, unknown>; headers?: Record<string, unknown> }>
  >,
): Project {
  const rows = Object.entries(filters).map(([type, filter]) => ({
    id: type,
    endpoint_id: 'a',
    event_types: [type],
    filter,
  }));
  return {
    id: 'p',
    type: 'outgoing',
    shard: 'default',
    subscriptionsOfText: new Map(),
    functionVersions: new Map(),
    orderings: new Map(),
    isOrdered: false,
    unreadable: new Set(),
    unreadableFilter: undefined,
    ...routedProject([endpoint('a')], rows, () => undefined),
  };
}

/** An event with 60,000 members, the slowest to parse. */
const LARGE: RoutableEvent = {
  ...{ eventType: 'member', messageType: 'single', endpointId: null, ownerId: null, headers: {} },
  data: JSON.stringify({
    a: Object.fromEntries(Array.from({ length: 60_000 }, (_, n) => [`k${n}`, n])),
  }),
};

/** The number of steps and the outcome; undefined if the event remains pending. */
function stepsOf(
  planner: DeliveryPlanner,
  ...given: Parameters<DeliveryPlanner['routeInSteps']>
): [number, string | undefined] {
  const routed = planner.routeInSteps(...given);
  for (let steps = 1; ; steps++) {
    const { done, value } = routed.next();
    if (done) return [steps, value?.outcome];
  }
}

routing(
  'a large body that a filter asks for is parsed in steps, and not with the events of others',
  () => {
    const project = filtered({
      member: { body: { 'a.k59999': 59_999 } },
      size: { body: { a: { $in: Array.from({ length: 190 }, () => ({})) } } },
      header: { headers: { tenant: 'x' }, body: { a: 1 } },
    });
    const planner = planning();
    assert.is(planner.route(project, LARGE), undefined);
    const [steps, outcome] = stepsOf(planner, project, LARGE);
    assert.ok(steps > 50, `${steps} steps`);
    assert.is(outcome, 'routed');
    assert.is(stepsOf(planner, project, { ...LARGE, eventType: 'size' })[1], 'no_subscription');
    // A body that no filter needs is not parsed, whatever its size.
    const data = 'x'.repeat(BODY_AT_ONCE_MAX + 1);
    for (const fields of [
      { eventType: 'header' },
      { endpointId: 'a' },
      { messageType: 'broadcast' as const },
      { eventType: 'other' },
    ]) {
      assert.ok(planner.route(project, { ...LARGE, ...fields, data }));
      assert.is(stepsOf(planner, project, { ...LARGE, ...fields, data })[0], 1);
    }
  },
);

routing(
  'one large body of a project is parsed at a time, and counts before the next one begins',
  () => {
    const project = filtered({ member: { body: { a: 1 } } });
    const planner = planning(1_000);
    planner.routeInSteps(project, LARGE).next();
    assert.equal(planner.postponed, ['p']);
    assert.equal(stepsOf(planner, project, LARGE), [1, undefined]);
  },
);

routing.run();
