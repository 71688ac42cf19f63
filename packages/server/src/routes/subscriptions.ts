import { Type, type Static } from '@sinclair/typebox';
import { GatewayError, type InvalidField } from '@gateway/core/errors';
import { compileFilter } from '@gateway/core/events';
import {
  deleteSubscription,
  findEndpoint,
  findSubscription,
  insertSubscription,
  listSubscriptions,
  updateSubscription,
  type SubscriptionFields,
  type SubscriptionRow,
} from '@gateway/store/config';
import { refuse } from '../http/mount.js';
import { pageQuery, pageRequest, pageView } from '../http/pagination.js';
import { projectRoute, type ProjectCall, type Route } from '../http/route.js';
import { closed, Id, Name, Word } from '../http/schema.js';

const Filter = Type.Record(Type.String(), Type.Unknown(), { maxProperties: 100 });
const FilterConfig = Type.Object(
  {
    event_types: Type.Optional(
      Type.Array(Word, { minItems: 1, maxItems: 200, description: '`*` is every type, `order.*` every one that begins with `order.`.' }),
    ),
    filter: Type.Optional(Type.Object({ headers: Type.Optional(Filter), body: Type.Optional(Filter) }, closed)),
  },
  closed,
);
const NewSubscription = Type.Object({ name: Name, endpoint_id: Id, filter_config: Type.Optional(FilterConfig) }, closed);
const ChangedSubscription = Type.Partial(NewSubscription, closed);

function view({ id, event_types, filter, ...row }: SubscriptionRow): unknown {
  return { uid: id, ...row, filter_config: { event_types, filter: { headers: filter?.headers ?? {}, body: filter?.body ?? {} } } };
}

const missing = (id: string | undefined) => new GatewayError('not_found', { thing: 'subscription', id: id ?? '' });

export const subscriptionRoutes: readonly Route[] = [
  projectRoute(
    {
      method: 'post',
      path: '/subscriptions',
      summary: 'Subscribes an endpoint to events of the project.',
      body: NewSubscription,
      status: 201,
    },
    async (call) => {
      const { parts, project, body } = call;
      await check(call);
      const { event_types = ['*'], filter = null } = body.filter_config ?? {};
      const row = await insertSubscription(parts.database.knex, project.id, {
        name: body.name,
        endpoint_id: body.endpoint_id,
        event_types,
        filter,
      });
      return { message: 'subscription created', data: view(row) };
    },
  ),
  projectRoute(
    {
      method: 'get',
      path: '/subscriptions',
      summary: 'Lists subscriptions.',
      query: Type.Object({ ...pageQuery, endpointId: Type.Optional(Id) }, closed),
    },
    async ({ parts, project, query }) => {
      const request = pageRequest(query);
      const page = await listSubscriptions(parts.database.knex, project.id, query, request);
      return { message: 'subscriptions', data: pageView(page, request, view) };
    },
  ),
  projectRoute({ method: 'get', path: '/subscriptions/:id', summary: 'Shows a subscription.' }, async ({ parts, project, params }) => {
    const row = await findSubscription(parts.database.knex, project.id, params['id'] ?? '');
    if (!row) throw missing(params['id']);
    return { message: 'subscription', data: view(row) };
  }),
  projectRoute(
    { method: 'put', path: '/subscriptions/:id', summary: 'Changes what is given of a subscription.', body: ChangedSubscription },
    async (call) => {
      const { parts, project, params } = call;
      await check(call);
      const row = await updateSubscription(parts.database.knex, project.id, params['id'] ?? '', columnsOf(call.body));
      if (!row) throw missing(params['id']);
      return { message: 'subscription updated', data: view(row) };
    },
  ),
  projectRoute({ method: 'delete', path: '/subscriptions/:id', summary: 'Deletes a subscription.' }, async ({ parts, project, params }) => {
    if (!(await deleteSubscription(parts.database.knex, project.id, params['id'] ?? ''))) throw missing(params['id']);
    return { message: 'subscription deleted', data: null };
  }),
];

function columnsOf({ filter_config, ...plain }: Static<typeof ChangedSubscription>): Partial<SubscriptionFields> {
  const { event_types, filter } = filter_config ?? {};
  return { ...plain, ...(event_types ? { event_types } : {}), ...(filter ? { filter } : {}) };
}

/** What the schema cannot say: the endpoint exists, patterns and filters mean something. */
async function check({ parts, project, body }: ProjectCall<Static<typeof ChangedSubscription>>): Promise<void> {
  const { endpoint_id, filter_config } = body;
  const problems: InvalidField[] = [];
  if (endpoint_id !== undefined && !(await findEndpoint(parts.database.knex, project.id, endpoint_id))) {
    problems.push({ field: 'endpoint_id', sentence: 'is not an endpoint of this project' });
  }
  filter_config?.event_types?.forEach((pattern, index) => {
    if (pattern.replace(/(^|\.)\*$/, '').includes('*')) {
      problems.push({ field: `filter_config.event_types.${index}`, sentence: 'may have * alone or at the end after a dot, as in order.*' });
    }
  });
  for (const part of ['headers', 'body'] as const) {
    try {
      compileFilter(filter_config?.filter?.[part] ?? {});
    } catch (error) {
      problems.push({ field: `filter_config.filter.${part}`, sentence: (error as Error).message });
    }
  }
  refuse(problems);
}
