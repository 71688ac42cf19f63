import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Endpoint } from '#agent/config/project';
import { ProjectPace } from '#agent/model/project-pace';
import { DeliveryPlanner } from '#agent/routing/plan-deliveries';
import { route } from '#core/routing/route';
import { routedProject } from '#core/routing/routed-project';
import { cachedEndpoint } from '../records.js';

const routing = suite('agent/routing/plan-deliveries');

const endpoint = (id: string, fields: Partial<Endpoint> = {}) => cachedEndpoint({ projectId: 'p', id, ...fields });

routing('a paused or inactive endpoint is a target like others: its delivery row says what became of it', () => {
  const endpoints = [endpoint('a', { status: 'paused' }), endpoint('b', { status: 'inactive' })];
  const resting = routedProject(endpoints, [{ id: 's', endpoint_id: 'a', event_types: ['*'], filter: null }], () => undefined);
  const event = { eventType: 'a', messageType: 'single', endpointId: null, ownerId: null, headers: {}, data: '{}' } as const;
  const targetsOf = (fields: object) => route(resting, { ...event, ...fields }).targets.map((it) => it.endpoint.id);
  assert.equal(targetsOf({ messageType: 'broadcast' }), ['a', 'b']);
  assert.equal(targetsOf({ endpointId: 'b' }), ['b']);
  assert.equal(targetsOf({}), ['a']);
});

routing('a delivery is claimed while there is room for it; at a paused endpoint it is held, and at an inactive one discarded', () => {
  const id = (last: number) => `019ab3c4-0000-7000-8000-00000000001${last}`;
  const reserved = new Set<string>();
  const planner = new DeliveryPlanner({
    inFlight: {
      hold: () => undefined,
      hasRoomFor: ({ endpointId }) => endpointId !== id(4),
      reserve: ({ id: deliveryId }) => void reserved.add(deliveryId),
      cancel: (deliveries) => deliveries.forEach((one) => reserved.delete(one.id)),
    },
    backpressure: { newWait: () => undefined },
    dueTimes: { add: () => undefined },
    routingPace: new ProjectPace(0),
    claimsFirstAttempts: true,
  });
  const plan = planner.plan(1, 2);
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
  planner.add(
    plan,
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
  assert.equal(
    plan.held.map(({ endpointId }) => endpointId),
    [id(3), id(5)],
  );
  planner.handOver(plan, ({ endpointId }) => endpointId === id(3));
  assert.equal([...reserved], [plan.held[0]!.id], 'what was not new takes no room');
  planner.drop(plan);
  assert.is(reserved.size, 0);
});

routing.run();
