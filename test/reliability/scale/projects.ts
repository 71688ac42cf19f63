import { GatewayClient } from '@gateway/client';
import type { Database } from '../../support/database.js';
import { type Created, managementApi, succeed } from '../../support/production.js';
import { services } from '../../support/services.js';
import { noneLine } from '../proof/row-lines.js';
import { topic, type Topic } from '../proof/brokers.js';
import type { Line } from '../proof/reconcile.js';
import { startReceiver, type Receiver } from '../proof/receiver.js';

/** A project with a Kafka topic as its source and an endpoint. */
export interface ScaleProject {
  readonly id: string;
  readonly topic: Topic;
  readonly receiver: Receiver;
}

const PARTITIONS = 2;
/** Failed attempts are retried until their shard is back. */
const strategy = { type: 'linear', duration: 1, retry_count: 1000 };

/** Creates a topic and a receiver. The caller closes both. */
export async function createEnds(): Promise<Omit<ScaleProject, 'id'>> {
  return {
    topic: await topic(await services.kafka(), PARTITIONS),
    receiver: await startReceiver(),
  };
}

/** Creates a project on a shard, between a topic and a receiver. */
export async function createProject(
  { port, key, folder }: { readonly port: number; readonly key: string; readonly folder: string },
  shard: string,
  ends: Omit<ScaleProject, 'id'>,
): Promise<ScaleProject> {
  const call = managementApi(port, key);
  const fields = { name: `on ${shard}`, type: 'outgoing', config: { strategy } };
  const { uid: id } = await call<Created>('POST', '/projects', fields);
  await succeed(['shards', 'assign', id, shard], { folder });
  const create = <Data = Created>(what: string, body: object) =>
    call<Data>('POST', `/projects/${id}/${what}`, body);
  const { uid, secrets } = await create<{ uid: string; secrets: { value: string }[] }>(
    'endpoints',
    { name: 'receiver', url: `http://127.0.0.1:${ends.receiver.port}` },
  );
  ends.receiver.expect(secrets[0]!.value);
  await create('subscriptions', {
    name: 'orders',
    endpoint_id: uid,
    filter_config: { event_types: ['order.*'] },
  });
  const kafka = {
    brokers: [(await services.kafka()).listeners.plaintext],
    topic_name: ends.topic.name,
    consumer_group_id: ends.topic.group,
  };
  const pubSub = { type: 'kafka', workers: 1, kafka };
  await create('sources', { name: 'topic', type: 'pub_sub', pub_sub: pubSub });
  return { id, ...ends };
}

/** Compares the lists of the API, read page by page, with the rows of all shards. */
export async function listLines(
  { port, key }: { readonly port: number; readonly key: string },
  projects: readonly ScaleProject[],
  shards: readonly Database['rows'][],
): Promise<Line[]> {
  const wrong: string[] = [];
  for (const { id } of projects) {
    const client = new GatewayClient({ url: `http://127.0.0.1:${port}`, key, projectId: id });
    const lists = { events: client.events, event_deliveries: client.eventDeliveries };
    for (const [table, resource] of Object.entries(lists)) {
      const stored = await Promise.all(
        shards.map((rows) =>
          rows<{ id: string }>(`select id from ${table} where project_id = $1`, [id]),
        ),
      );
      const expected = stored.flatMap((rows) => rows.map((row) => row.id)).sort();
      const listed = [];
      for await (const { uid } of resource.list({ perPage: 100, sort: 'ASC' })) listed.push(uid);
      if (listed.join() !== expected.join())
        wrong.push(`${table} of ${id}: ${listed.length} listed, ${expected.length} there`);
    }
  }
  return [noneLine('lists of moved projects with missing, repeated or disordered rows', wrong)];
}
