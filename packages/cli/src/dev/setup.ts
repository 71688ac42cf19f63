import { lookUp, type Api } from './api.js';
import { remember, type Memory } from './memory.js';
import { QUEUE_KEYS, QUEUE_REGION } from './queue.js';
import { QUEUE_FUNCTION, QUEUE_NAME } from './sample.js';

/** What a message needs on its way. */
export interface Setup {
  readonly projectId: string;
  readonly sourceId: string;
  readonly endpointId: string;
  readonly endpointSecret: string;
  /** False when somebody has taken the function of the source away. */
  readonly isTransformed: boolean;
  /** Names of what was made just now. */
  readonly made: readonly string[];
}

interface Made {
  readonly uid: string;
}

const NAMES = {
  project: 'Development',
  source: 'Orders queue',
  endpoint: 'Inbox',
  subscription: 'Everything to the inbox',
} as const;

/**
 * Sees that project, source, endpoint and subscription are there, over the management API, as anybody else would make them. What was made at an
 * earlier start is kept with all that was changed of it since; only the addresses follow the ports.
 */
export async function setUp(
  api: Api,
  file: string,
  before: Memory,
  { queueEndpoint, inboxUrl }: { queueEndpoint: string; inboxUrl: string },
): Promise<Setup> {
  const made: string[] = [];
  let memory = before;
  const keep = (name: string, added: Memory) => {
    made.push(name);
    memory = remember(file, added);
  };

  if (!(await lookUp(api, '/projects', memory.project_id))) {
    const { uid } = await api.post<Made>('/projects', { name: NAMES.project, type: 'outgoing' });
    keep(`project "${NAMES.project}"`, { project_id: uid, topics: {} });
  }
  const projectId = memory.project_id!;
  const at = (path: string) => `/projects/${projectId}${path}`;
  const known = <T>(path: string, id: string | undefined) => lookUp<T>(api, at(path), id);

  const endpoint = await known<{ url: string }>('/endpoints', memory.endpoint_id);
  if (!endpoint) {
    const { uid, secrets } = await api.post<Made & { secrets: { value: string }[] }>(at('/endpoints'), {
      name: NAMES.endpoint,
      url: inboxUrl,
    });
    keep(`endpoint "${NAMES.endpoint}"`, { endpoint_id: uid, endpoint_secret: secrets[0]!.value, inbox_url: inboxUrl });
  } else if (endpoint.url === memory.inbox_url && endpoint.url !== inboxUrl) {
    await api.put(at(`/endpoints/${memory.endpoint_id}`), { url: inboxUrl });
    memory = remember(file, { inbox_url: inboxUrl });
  }

  if (!(await known('/subscriptions', memory.subscription_id))) {
    const { uid } = await api.post<Made>(at('/subscriptions'), {
      name: NAMES.subscription,
      endpoint_id: memory.endpoint_id,
      filter_config: { event_types: ['*'] },
    });
    keep(`subscription "${NAMES.subscription}"`, { subscription_id: uid });
  }

  const sqs = { ...QUEUE_KEYS, default_region: QUEUE_REGION, queue_name: QUEUE_NAME, endpoint: queueEndpoint };
  const source = await known<{ body_function: string | null; pub_sub: { workers: number; sqs?: { endpoint?: string } } }>(
    '/sources',
    memory.source_id,
  );
  if (!source) {
    const { uid } = await api.post<Made>(at('/sources'), {
      name: NAMES.source,
      type: 'pub_sub',
      pub_sub: { type: 'sqs', workers: 1, sqs },
      body_function: QUEUE_FUNCTION,
    });
    keep(`source "${NAMES.source}" with a transform`, { source_id: uid, queue_endpoint: queueEndpoint });
  } else if (source.pub_sub.sqs?.endpoint === memory.queue_endpoint && memory.queue_endpoint !== queueEndpoint) {
    await api.put(at(`/sources/${memory.source_id}`), { pub_sub: { type: 'sqs', workers: source.pub_sub.workers, sqs } });
    memory = remember(file, { queue_endpoint: queueEndpoint });
  }
  return {
    projectId,
    sourceId: memory.source_id!,
    endpointId: memory.endpoint_id!,
    endpointSecret: memory.endpoint_secret ?? '',
    isTransformed: source?.body_function !== null,
    made,
  };
}
