import { randomBytes } from 'node:crypto';
import type { Config } from '@gateway/core/config';
import { bootstrapUser } from '@gateway/store/people';
import { migrateUp, type Database } from '@gateway/store/postgres';
import { withDatabase } from '@gateway/cli/app/stores';
import type { Api } from './api.js';
import type { KafkaTopic } from './flags.js';
import { QUEUE_KEYS, QUEUE_NAME, QUEUE_REGION } from './services/queue.js';
import type { DevState } from './state.js';

const QUEUE_FUNCTION = `// Called with each message of the queue; returns the event to deliver.
function transform(payload) {
  // An ingest message stays as it is.
  if (payload.event_type && payload.data) return payload;
  return {
    event_type: payload.kind,
    data: payload.order,
    custom_headers: { 'x-shop': payload.shop },
  };
}
`;

/** Returns the text of a function that turns any JSON into an event. */
function topicFunction(topic: string): string {
  return `// Called with each message of the topic; returns the event to deliver.
function transform(payload) {
  // An ingest message stays as it is.
  if (payload && payload.event_type && payload.data) return payload;
  const isObject = typeof payload === 'object' && payload !== null && !Array.isArray(payload);
  return { event_type: ${JSON.stringify(topic)}, data: isObject ? payload : { value: payload } };
}
`;
}

/**
 * Migrates the database like `gateway migrate up` and, on the first start, creates a user like
 * `gateway bootstrap`. Returns the applied migrations and the API key.
 */
export function prepareDatabase(
  config: Config,
  state: DevState,
): Promise<{ applied: readonly string[]; apiKey: string }> {
  const work = async (database: Database) => {
    const applied = await migrateUp(database);
    const { api_key: known } = state.record;
    if (known !== undefined) return { applied, apiKey: known };
    const email = `developer-${randomBytes(3).toString('hex')}@example.com`;
    const { password, api_key: created } = await bootstrapUser(database.knex, {
      email,
      firstName: 'Local',
      lastName: 'Developer',
    });
    state.save({ api_key: created.key, user: { email, password } });
    return { applied, apiKey: created.key };
  };
  return withDatabase(config, work, { migrated: false });
}

/**
 * Creates missing resources through the management API. Existing ones keep the user's changes. The
 * inbox and queue addresses follow changes of their ports, unless the user changed the addresses.
 *
 * @returns the labels of created resources, and the source's name
 */
export async function setUp(
  api: Api,
  state: DevState,
  address: { inbox: string; queue: string },
): Promise<{ made: readonly string[]; sourceName: string }> {
  const made: string[] = [];
  const ensure = async <T>(
    kind: 'project' | 'endpoint' | 'subscription' | 'source',
    path: string,
    body: { readonly name: string; readonly [field: string]: unknown },
    label = '',
  ) => {
    const known = await api.find<T>(path, state.record[`${kind}_id`]);
    if (known) return known;
    const created = await api.call<T & { uid: string }>('POST', path, body);
    state.save({ [`${kind}_id`]: created.uid });
    made.push(`${kind} "${body.name}"${label}`);
    return created;
  };
  /** Updates a changed address, unless the user has set another one. */
  const follow = async (
    key: 'inbox_url' | 'queue_endpoint',
    from: string | undefined,
    to: string,
    change: () => Promise<unknown>,
  ) => {
    if (from !== to && from === state.record[key]) await change();
    state.save({ [key]: to });
  };

  await ensure('project', '/projects', { name: 'Development', type: 'outgoing' });
  const project = `/projects/${state.record.project_id}`;

  type Endpoint = { url: string; secrets: { value: string }[] };
  const endpoint = await ensure<Endpoint>('endpoint', `${project}/endpoints`, {
    name: 'Inbox',
    url: address.inbox,
  });
  if (made.includes('endpoint "Inbox"'))
    state.save({ endpoint_secret: endpoint.secrets[0]!.value });
  await follow('inbox_url', endpoint.url, address.inbox, () =>
    api.call('PUT', `${project}/endpoints/${state.record.endpoint_id}`, { url: address.inbox }),
  );

  const everything = {
    endpoint_id: state.record.endpoint_id,
    filter_config: { event_types: ['*'] },
  };
  await ensure('subscription', `${project}/subscriptions`, {
    name: 'Everything to the inbox',
    ...everything,
  });

  const sqs = {
    ...QUEUE_KEYS,
    default_region: QUEUE_REGION,
    queue_name: QUEUE_NAME,
    endpoint: address.queue,
  };
  type Source = { name: string; pub_sub: { workers: number; sqs?: { endpoint?: string } } };
  const queue = {
    name: 'Orders queue',
    type: 'pub_sub',
    pub_sub: { type: 'sqs', workers: 1, sqs },
    body_function: QUEUE_FUNCTION,
  };
  const source = await ensure<Source>('source', `${project}/sources`, queue, ' with a transform');
  await follow('queue_endpoint', source.pub_sub.sqs?.endpoint, address.queue, () =>
    api.call('PUT', `${project}/sources/${state.record.source_id}`, {
      pub_sub: { type: 'sqs', workers: source.pub_sub.workers, sqs },
    }),
  );
  return { made, sourceName: source.name };
}

/**
 * Creates a source for the topic, or updates its brokers. The API first connects to the broker.
 * Returns the source's name, and whether it is new. Throws a DevError, changing nothing, if the
 * broker or the topic is unreachable.
 */
export async function addTopic(
  api: Api,
  state: DevState,
  { brokers, name }: KafkaTopic,
): Promise<{ source: string; isNew: boolean }> {
  const { project_id: projectId, topics = {} } = state.record;
  const path = `/projects/${projectId}/sources`;
  // Without a group id, each source has its own consumer group, so developers on one cluster do not
  // compete for messages.
  const pubSub = { type: 'kafka', workers: 1, kafka: { brokers, topic_name: name } };
  const known = await api.find<{
    name: string;
    pub_sub: { kafka?: { brokers?: readonly string[] } };
  }>(path, topics[name]);
  if (known) {
    if (known.pub_sub.kafka?.brokers?.join() !== brokers.join())
      await api.call('PUT', `${path}/${topics[name]}`, { pub_sub: pubSub });
    return { source: known.name, isNew: false };
  }
  const source = `Topic ${name}`;
  const body = {
    name: source,
    type: 'pub_sub',
    pub_sub: pubSub,
    body_function: topicFunction(name),
  };
  const { uid } = await api.call<{ uid: string }>('POST', path, body);
  state.save({ topics: { ...topics, [name]: uid } });
  return { source, isNew: true };
}
