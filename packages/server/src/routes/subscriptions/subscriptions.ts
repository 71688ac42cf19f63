import type { InvalidField } from '@gateway/core/errors';
import { functionText } from '@gateway/ingest/message/ingest-source';
import {
  deleteSubscription,
  findEndpoint,
  findSubscription,
  insertSubscription,
  listSubscriptions,
  toggleSubscription,
  updateSubscription,
  type SubscriptionFields,
  type SubscriptionRow,
} from '@gateway/store/config';
import {
  answered,
  assertValid,
  boolean,
  Id,
  ignoring,
  listRoute,
  Name,
  named,
  namedObject,
  nullable,
  object,
  pageQuery,
  projectItem,
  searchQuery,
  string,
  Timestamp,
  Type,
  type ProjectCall,
  type Route,
  type Static,
} from '../../api/vocabulary.js';
import { Ordering } from '../endpoints/endpoint-schema.js';
import { portalProblems } from '../endpoints/portal-fields.js';
import { FunctionText, validateFunction } from '../transform-function.js';
import { EventTypes, Filter, filterProblems, patternProblems } from './filter.js';
import { testFilterRoutes } from './test-filter.js';
import { testFunctionRoutes } from './test-function.js';

const FilterConfig = object({
  event_types: EventTypes,
  filter: Type.Optional(Filter),
});
const is_disabled = boolean('Whether the subscription is disabled and matches no event.');
const fields = object({
  name: Name,
  endpoint_id: Id,
  filter_config: Type.Optional(FilterConfig),
  is_disabled: Type.Optional(is_disabled),
  function: Type.Optional(
    Type.Unsafe<string | null>({
      ...nullable(FunctionText),
      description:
        'JavaScript with a function transform(payload), which gets the data of an event and returns what is sent. Not over a portal link.',
      'x-set-by': 'project',
    }),
  ),
  ordering: Type.Optional(
    Type.Unsafe<string | null>({
      ...nullable(Ordering),
      description:
        'Orders deliveries by this key instead of that of the endpoint: `message.key`, or a path such as `data.order.id` or `headers.x-order`.',
      'x-set-by': 'project',
    }),
  ),
});
/**
 * Retries and rate limits belong to the endpoint, alerts to the instance, and a subscription covers
 * all sources.
 */
const IGNORED_FIELDS = ['alert_config', 'retry_config', 'rate_limit_config', 'source_id'];
const NewSubscription = named('CreateSubscription', ignoring(IGNORED_FIELDS, fields));
const ChangedSubscription = named(
  'ChangedSubscription',
  ignoring(IGNORED_FIELDS, Type.Partial(fields, { additionalProperties: false })),
);
const FilterView = Type.Record(string(), Type.Unknown());
const Subscription = namedObject('Subscription', {
  uid: Id,
  project_id: Id,
  ...answered({ name: Name, is_disabled }),
  endpoint_id: Id,
  function: nullable(string(), 'The function; null over a portal link.'),
  ordering: nullable(
    string(),
    'The key by which deliveries are ordered; null if the endpoint decides.',
  ),
  filter_config: object({
    event_types: Type.Array(string()),
    filter: object({ headers: FilterView, body: FilterView, message: Type.Optional(FilterView) }),
  }),
  created_at: Timestamp,
  updated_at: Timestamp,
});
const ListQuery = object({ ...pageQuery, ...searchQuery, endpointId: Type.Optional(Id) });

function view(
  { id, event_types, filter, function: text, ...row }: SubscriptionRow,
  { ownerId }: ProjectCall,
): unknown {
  // A function can mention data that the owner must not receive, so owners do not see it.
  const shown = ownerId === undefined ? text : null;
  return {
    uid: id,
    ...row,
    function: shown,
    filter_config: {
      event_types,
      filter: { headers: {}, body: {}, ...filter },
    },
  };
}

const item = { thing: 'subscription', data: Subscription, portal: 'any' } as const;
const managed = { thing: 'subscription', data: Subscription, portal: 'managing' } as const;

export const subscriptionRoutes: readonly Route[] = [
  projectItem(
    'POST /subscriptions',
    'Subscribes an endpoint to events of the project.',
    { ...managed, body: NewSubscription, status: 201 },
    async (call) => {
      await validate(call);
      const { body, config, database, ownerId, project } = call;
      const { event_types = ['*'], filter = null } = body.filter_config ?? {};
      const { subscriptions_per_project: max, subscriptions_per_owner: ofOwner } = config.limits;
      const share = ownerId === undefined ? undefined : { ownerId, max: ofOwner };
      const { name, endpoint_id, ...rest } = body;
      const fields = { name, endpoint_id, ...columnsOf(rest), event_types, filter };
      return insertSubscription(database.knex, project.id, fields, max, share);
    },
    view,
  ),
  listRoute(
    '/subscriptions',
    'Lists subscriptions.',
    { query: ListQuery, title: 'subscriptions', data: Subscription, portal: 'any' },
    ({ database, project, query: { endpointId, q }, ownerId }, page) =>
      listSubscriptions(database.knex, project.id, { endpointId, ownerId }, page, q),
    view,
  ),
  ...testFilterRoutes,
  ...testFunctionRoutes,
  projectItem(
    'GET /subscriptions/:id',
    'Shows a subscription.',
    item,
    ({ database, project, id }) => findSubscription(database.knex, project.id, id),
    view,
  ),
  projectItem(
    'PUT /subscriptions/:id',
    'Updates the given fields of a subscription.',
    { ...managed, body: ChangedSubscription },
    async (call) => {
      await validate(call);
      const { database, project, id, body } = call;
      return updateSubscription(database.knex, project.id, id, columnsOf(body));
    },
    view,
  ),
  projectItem(
    'PUT /subscriptions/:id/toggle_status',
    'Disables an enabled subscription, so that it matches no events, or enables a disabled one.',
    {
      ...managed,
      message: ({ is_disabled }: SubscriptionRow) =>
        `subscription ${is_disabled ? 'disabled' : 'enabled'}`,
    },
    ({ database, project, id }) => toggleSubscription(database.knex, project.id, id),
    view,
  ),
  projectItem(
    'DELETE /subscriptions/:id',
    'Deletes a subscription.',
    { thing: 'subscription', portal: 'managing' },
    ({ database, project, id }) => deleteSubscription(database.knex, project.id, id),
  ),
];

function columnsOf({
  filter_config,
  function: text,
  ...plain
}: Static<typeof ChangedSubscription>): Partial<SubscriptionFields> {
  const { event_types, filter } = filter_config ?? {};
  return {
    ...plain,
    ...(text === undefined ? {} : { function: functionText(text) }),
    ...(event_types ? { event_types } : {}),
    ...(filter ? { filter } : {}),
  };
}

async function validate(call: ProjectCall<Static<typeof ChangedSubscription>>): Promise<void> {
  const { database, project, body, ownerId } = call;
  const { endpoint_id, filter_config } = body;
  const problems: InvalidField[] = [];
  if (endpoint_id !== undefined) {
    const endpoint = await findEndpoint(database.knex, project.id, endpoint_id);
    const isOfAnother = ownerId !== undefined && endpoint?.owner_id !== ownerId;
    if (!endpoint || isOfAnother)
      problems.push({ field: 'endpoint_id', sentence: 'is not an endpoint of this project' });
  }
  validateFunction(body.function, 'function');
  const { event_types, filter = {} } = filter_config ?? {};
  assertValid([
    ...problems,
    ...portalProblems(ChangedSubscription, call),
    ...patternProblems(event_types, 'filter_config.event_types'),
    ...filterProblems(filter, 'filter_config.filter'),
  ]);
}
