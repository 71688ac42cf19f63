import { randomBytes } from 'node:crypto';
import type { Config } from '@gateway/core/config';
import { bootstrapUser } from '@gateway/store/config';
import { migrateUp, type Database } from '@gateway/store/postgres';
import { withDatabase } from '../app/database.js';
import type { Api } from './api.js';
import type { Topic } from './flags.js';
import { QUEUE_KEYS, QUEUE_NAME, QUEUE_REGION } from './services/queue.js';
import { readRecord, updateRecord, type DevState } from './state.js';

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

/** Makes an event of any JSON in a topic. */
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

/** What the sample message needs. */
export interface Setup {
  readonly projectId: string;
  readonly sourceId: string;
  readonly sourceName: string;
  readonly endpointId: string;
  readonly endpointSecret: string;
  /** False if the user has removed the function of the source. */
  readonly isTransformed: boolean;
  /** What this start has created, for display. */
  readonly made: readonly string[];
}

/**
 * Migrates the database and creates the user of the API key, as `gateway migrate up` and `gateway bootstrap` do.
 *
 * @returns the migrations that were applied, and the API key
 */
export function prepareDatabase(config: Config, { files }: DevState): Promise<{ applied: readonly string[]; apiKey: string }> {
  const work = async (database: Database) => {
    const applied = await migrateUp(database);
    const { api_key: known } = readRecord(files);
    if (known !== undefined) return { applied, apiKey: known };
    const email = `developer-${randomBytes(3).toString('hex')}@example.com`;
    const { password, api_key: created } = await bootstrapUser(database.knex, { email, firstName: 'Local', lastName: 'Developer' });
    updateRecord(files, { api_key: created.key, user: { email, password } });
    return { applied, apiKey: created.key };
  };
  return withDatabase(config, work, { migrated: false });
}

/**
 * Creates over the management API what is missing of project, endpoint, subscription and source. What exists keeps the changes of the user; only the
 * addresses of inbox and queue follow their ports.
 */
export async function setUp(api: Api, { files }: DevState, address: { inbox: string; queue: string }): Promise<Setup> {
  const made: string[] = [];
  let record = readRecord(files);
  const save = (added: Parameters<typeof updateRecord>[1]) => (record = updateRecord(files, added));
  const create = async <T>(path: string, label: string, body: object): Promise<T & { uid: string }> => {
    const created = await api.call<T & { uid: string }>('POST', path, body);
    made.push(label);
    return created;
  };

  if (!(await api.find('/projects', record.project_id))) {
    const { uid } = await create('/projects', 'project "Development"', { name: 'Development', type: 'outgoing' });
    save({ project_id: uid, topics: {} });
  }
  const project = `/projects/${record.project_id}`;

  const endpoint = await api.find<{ url: string }>(`${project}/endpoints`, record.endpoint_id);
  if (!endpoint) {
    const body = { name: 'Inbox', url: address.inbox };
    const { uid, secrets } = await create<{ secrets: { value: string }[] }>(`${project}/endpoints`, 'endpoint "Inbox"', body);
    save({ endpoint_id: uid, endpoint_secret: secrets[0]!.value, inbox_url: address.inbox });
  } else if (endpoint.url === record.inbox_url && endpoint.url !== address.inbox) {
    await api.call('PUT', `${project}/endpoints/${record.endpoint_id}`, { url: address.inbox });
    save({ inbox_url: address.inbox });
  }

  if (!(await api.find(`${project}/subscriptions`, record.subscription_id))) {
    const name = 'Everything to the inbox';
    const body = { name, endpoint_id: record.endpoint_id, filter_config: { event_types: ['*'] } };
    const { uid } = await create(`${project}/subscriptions`, `subscription "${name}"`, body);
    save({ subscription_id: uid });
  }

  const sqs = { ...QUEUE_KEYS, default_region: QUEUE_REGION, queue_name: QUEUE_NAME, endpoint: address.queue };
  type Source = { name: string; body_function: string | null; pub_sub: { workers: number; sqs?: { endpoint?: string } } };
  const source = await api.find<Source>(`${project}/sources`, record.source_id);
  if (!source) {
    const pubSub = { type: 'sqs', workers: 1, sqs };
    const body = { name: 'Orders queue', type: 'pub_sub', pub_sub: pubSub, body_function: QUEUE_FUNCTION };
    const { uid } = await create(`${project}/sources`, 'source "Orders queue" with a transform', body);
    save({ source_id: uid, queue_endpoint: address.queue });
  } else if (source.pub_sub.sqs?.endpoint === record.queue_endpoint && record.queue_endpoint !== address.queue) {
    await api.call('PUT', `${project}/sources/${record.source_id}`, { pub_sub: { type: 'sqs', workers: source.pub_sub.workers, sqs } });
    save({ queue_endpoint: address.queue });
  }
  return {
    projectId: record.project_id!,
    sourceId: record.source_id!,
    sourceName: source?.name ?? 'Orders queue',
    endpointId: record.endpoint_id!,
    endpointSecret: record.endpoint_secret ?? '',
    isTransformed: source?.body_function !== null,
    made,
  };
}

/**
 * Creates a source for the topic, or gives the existing one these brokers. The API connects to the broker first.
 *
 * @returns the name of the source, and whether it is new
 * @throws ApiError of the source plugin when the broker or the topic cannot be reached; then nothing is changed
 */
export async function addTopic(api: Api, { files }: DevState, { brokers, name }: Topic): Promise<{ source: string; isNew: boolean }> {
  const { project_id: projectId, topics = {} } = readRecord(files);
  const path = `/projects/${projectId}/sources`;
  // Without a group id, each source has a consumer group of its own: two developers on one cluster do not take messages from each other.
  const pubSub = { type: 'kafka', workers: 1, kafka: { brokers, topic_name: name } };
  const known = await api.find<{ name: string; pub_sub: { kafka?: { brokers?: readonly string[] } } }>(path, topics[name]);
  if (known) {
    if (known.pub_sub.kafka?.brokers?.join() !== brokers.join()) await api.call('PUT', `${path}/${topics[name]}`, { pub_sub: pubSub });
    return { source: known.name, isNew: false };
  }
  const source = `Topic ${name}`;
  const body = { name: source, type: 'pub_sub', pub_sub: pubSub, body_function: topicFunction(name) };
  const { uid } = await api.call<{ uid: string }>('POST', path, body);
  updateRecord(files, { topics: { ...topics, [name]: uid } });
  return { source, isNew: true };
}
