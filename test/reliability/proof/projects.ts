import { GatewayClient } from '@gateway/client';
import type { Database } from '../../support/database.js';
import { type Created, managementApi } from '../../support/production.js';
import type { Line } from './reconcile.js';
import type { Receiver } from './receiver.js';
import { noneLine } from './row-lines.js';

/** Where a management API answers, with a key of an instance admin. */
export interface Api {
  readonly port: number;
  readonly key: string;
}

export interface ProjectOptions {
  readonly shard: string;
  readonly receiver: Receiver;
  /** The URL of the endpoint: the receiver, maybe through a proxy, and a path of its own. */
  readonly url: string;
  readonly timeoutSeconds?: number;
  readonly sources: readonly object[];
}

/** Failed attempts are retried until what is away is back: nothing may remain at the end. */
const strategy = { type: 'linear', duration: 1, retry_count: 1000 };

/** Creates a project on a shard, with sources and an endpoint. Returns its id. */
export async function createProject(
  { port, key }: Api,
  { shard, receiver, url, timeoutSeconds, sources }: ProjectOptions,
): Promise<string> {
  const call = managementApi(port, key);
  const fields = { name: `on ${shard}`, shard, type: 'outgoing', config: { strategy } };
  const { uid: id } = await call<Created>('POST', '/projects', fields);
  const create = <Data = Created>(what: string, body: object) =>
    call<Data>('POST', `/projects/${id}/${what}`, body);
  const { uid, secrets } = await create<{ uid: string; secrets: { value: string }[] }>(
    'endpoints',
    {
      name: 'receiver',
      url,
      ...(timeoutSeconds !== undefined && { http_timeout: timeoutSeconds }),
    },
  );
  receiver.expect(secrets[0]!.value, new URL(url).pathname);
  await create('subscriptions', {
    name: 'orders',
    endpoint_id: uid,
    filter_config: { event_types: ['order.*'] },
  });
  for (const source of sources) await create('sources', source);
  return id;
}

/** Compares the lists of the API, read page by page, with the rows of all shards. */
export async function listLines(
  { port, key }: Api,
  projects: readonly string[],
  shards: readonly Database['rows'][],
): Promise<Line[]> {
  const wrong: string[] = [];
  for (const id of projects) {
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
