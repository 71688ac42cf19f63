import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readSummary } from '#store/counts/activity';
import { readEndpointTroubles, readProjectStates } from '#store/counts/health';
import { lastSample, takeSample } from '#store/counts/stored-sample';
import { listEventDeliveries } from '#store/deliveries/delivery-log';
import { listEvents } from '#store/events/event-log';
import { explainEvent } from '#server/explain/explain-event';
import type { PageRequest } from '#store/pagination/page';
import { listQuarantinedMessages, quarantineMessages } from '#store/quarantine/messages';
import { readReplayable, replayQuarantinedMessage } from '#store/quarantine/replay';
import { listUsage } from '#store/counts/usage';
import { pendingEvent, quarantinedMessage } from './batches.js';
import { makeDelivery, makeEndpoint, makeEvents, makeProject, makeSource } from './made.js';
import { migratedDatabase } from './migrated.js';

/* The planes are two databases here, so a read that asks the wrong one finds nothing. */
const reads = suite('store/planes-read');

const [control, data] = await Promise.all([migratedDatabase(), migratedDatabase()]);
const planes = { control: control.pool, data: data.pool };
reads.after(async () => void (await Promise.all([control.close(), data.close()])));

const page: PageRequest = { perPage: 20, direction: 'next', sort: 'DESC' };

/** A project with a pending event of its source, and a failed delivery to one of two endpoints. */
async function setUp() {
  const { id: projectId } = await makeProject(control, 'orders');
  const sourceId = await makeSource(control, projectId, 'topic');
  const { id: endpointId } = await makeEndpoint(control, projectId, { owner_id: 'acme' });
  await makeEndpoint(control, projectId, { name: 'bank', owner_id: 'other' });
  const [eventId] = await makeEvents(data, projectId, [
    { atMs: Date.now() - 1_000, sourceId, status: 'pending' },
  ]);
  const delivery = { projectId, eventId: eventId!, endpointId, status: 'failure' };
  const message = quarantinedMessage({ projectId, sourceId });
  await quarantineMessages(data.pool, [message]);
  return {
    projectId,
    sourceId,
    endpointId,
    eventId: eventId!,
    message,
    id: await makeDelivery(data, delivery),
  };
}

reads('deliveries have the names of their endpoints, and an owner those of its own', async () => {
  const { projectId, id } = await setUp();
  const listed = async (ownerId?: string) =>
    (await listEventDeliveries(planes, projectId, { ownerId }, page)).content.map((it) => [
      it.id,
      it.endpoint_name,
      it.endpoint_status,
    ]);
  assert.equal(await listed(), [[id, 'shop', 'active']]);
  assert.equal(await listed('acme'), [[id, 'shop', 'active']]);
  assert.equal(await listed('other'), []);
});

reads('events and quarantined messages of sources are found by their status', async () => {
  const { projectId, eventId, message } = await setUp();
  const events = await listEvents(planes, projectId, { status: 'pending' }, page);
  assert.equal(
    events.content.map(({ id }) => id),
    [eventId],
  );
  const quarantined = { status: 'quarantined' } as const;
  const messages = await listQuarantinedMessages(planes, projectId, quarantined, page);
  assert.equal(
    messages.content.map(({ id }) => id),
    [message.id],
  );
});

reads('a replay has the function of the source, and counts as usage', async () => {
  const { projectId, sourceId, message } = await setUp();
  await control.rows(`update sources set body_function = 'f' where id = $1`, [sourceId]);
  const [read] = await readReplayable(planes, [message]);
  assert.is(read?.bodyFunction, 'f');
  const events = [pendingEvent({ projectId })];
  await replayQuarantinedMessage(planes, read!, { events, idempotencyWindowSeconds: 60 });
  assert.equal(
    (await listUsage(control.pool, { days: 1 })).map((it) => it.events),
    [1],
  );
});

reads('health, the summary and a sample of the queues join counts with configuration', async () => {
  const { projectId, endpointId } = await setUp();
  const states = await readProjectStates(planes, projectId);
  assert.equal([states.pending_events, states.quarantined_messages], [1, 1]);
  const { content } = await readEndpointTroubles(planes, projectId, [endpointId]);
  assert.equal(
    content.map(({ name, kind }) => [name, kind]),
    [['shop', 'open']],
  );
  const { pending_events, endpoints, sources } = await readSummary(planes, projectId);
  assert.equal([pending_events, endpoints.active, sources.running], [1, 2, 1]);
  await data.rows(
    `insert into event_delivery_counts (project_id, endpoint_id, source, event_type, status, n) values ($1, $2, 'api', 'a', 'success', 1)`,
    [projectId, endpointId],
  );
  await takeSample(planes, { isDue: () => true, timeoutMs: 30_000, countsMax: 100 });
  const sample = (await lastSample(data.pool, undefined))?.sample;
  assert.is(sample?.projects[projectId]?.[0], 'orders');
});

reads('an event is explained with its names and endpoints', async () => {
  const { projectId, eventId, endpointId, message } = await setUp();
  const bounds = { projectId, ofEndpoint: null, max: 10 };
  const found = await explainEvent(planes, eventId, bounds);
  const { event, deliveries } = found.explanation!;
  assert.equal([event.project_name, event.source_name], ['orders', 'topic']);
  assert.equal(
    deliveries.map((it) => [it.endpoint_name, it.endpoint_status]),
    [['shop', 'active']],
  );
  const meanings = async (id: string) => {
    const { meanings: others = [] } = await explainEvent(planes, id, bounds);
    return others.map(({ thing }) => thing);
  };
  assert.equal(await meanings(message.id), ['quarantined message']);
  assert.equal(await meanings(endpointId), ['endpoint']);
});

reads.run();
