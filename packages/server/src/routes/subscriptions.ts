import { Type, type Static } from '@sinclair/typebox';
import { GatewayError, type InvalidField } from '@gateway/core/errors';
import { compileFilter, FilterBudgetError } from '@gateway/core/events';
import { filterMismatch, lowerNames, matchesType } from '@gateway/core/routing';
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
import { found, listRoute, projectRoute, type ProjectCall, type Route } from '../api/route.js';
import { pageQuery, searchQuery } from '../http/list-query.js';
import { ignoring, object, Id, Name, named, Timestamp, Word, assertValid } from '../http/schema.js';
import { Mismatch } from './explain.js';

const Filter = Type.Record(Type.String(), Type.Unknown(), { maxProperties: 100 });
const EventTypes = Type.Optional(
  Type.Array(Word, { minItems: 1, maxItems: 200, description: '`*` is every type, `order.*` every one that begins with `order.`.' }),
);
const FilterConfig = object({
  event_types: EventTypes,
  filter: Type.Optional(object({ headers: Type.Optional(Filter), body: Type.Optional(Filter) })),
});
const fields = object({
  name: Name,
  endpoint_id: Id,
  filter_config: Type.Optional(FilterConfig),
  is_disabled: Type.Optional(Type.Boolean({ description: 'It matches nothing.' })),
});
/** Retries and rate limits are those of the endpoint, alerts those of the instance, and a subscription is to all sources. */
const IGNORED_FIELDS = ['alert_config', 'retry_config', 'rate_limit_config', 'source_id'];
const NewSubscription = named('NewSubscription', ignoring(IGNORED_FIELDS, fields));
const ChangedSubscription = named('ChangedSubscription', ignoring(IGNORED_FIELDS, Type.Partial(fields, { additionalProperties: false })));
const FilterView = Type.Record(Type.String(), Type.Unknown());
const Subscription = named(
  'Subscription',
  object({
    uid: Id,
    project_id: Id,
    name: Type.String(),
    endpoint_id: Id,
    is_disabled: Type.Boolean(),
    filter_config: object({ event_types: Type.Array(Type.String()), filter: object({ headers: FilterView, body: FilterView }) }),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
);
const Sample = Type.Record(Type.String(), Type.Unknown());
const FilterTest = named(
  'FilterTest',
  object({
    event_types: EventTypes,
    filter: object({ headers: Type.Optional(Filter), body: Type.Optional(Filter) }),
    sample: object({
      event_type: Type.Optional(Type.Unsafe<string>({ ...Word, description: 'Left out: the event types are not tested.' })),
      headers: Type.Optional(Type.Record(Type.String(), Type.String())),
      body: Type.Optional(Type.Unsafe<Readonly<Record<string, unknown>>>({ ...Sample, description: 'The data of an event.' })),
    }),
  }),
);
const FilterMatch = named(
  'FilterMatch',
  object({
    matches: Type.Boolean({ description: 'Event types, headers and body do.' }),
    headers: Type.Boolean(),
    body: Type.Boolean(),
    mismatches: Type.Array(Mismatch, { description: 'What does not match, and why: one of each part.' }),
  }),
);
const ListQuery = object({ ...pageQuery, ...searchQuery, endpointId: Type.Optional(Id) });

function view({ id, event_types, filter, ...row }: SubscriptionRow): unknown {
  return { uid: id, ...row, filter_config: { event_types, filter: { headers: filter?.headers ?? {}, body: filter?.body ?? {} } } };
}

export const subscriptionRoutes: readonly Route[] = [
  projectRoute(
    'POST /subscriptions',
    'Subscribes an endpoint to events of the project.',
    { body: NewSubscription, data: Subscription, status: 201, portal: 'managing' },
    async (call) => {
      await validate(call);
      const { filter_config, ...plain } = call.body;
      const { event_types = ['*'], filter = null } = filter_config ?? {};
      const { subscriptions_per_project: max, subscriptions_per_owner: ofOwner } = call.config.limits;
      const share = call.ownerId === undefined ? undefined : { ownerId: call.ownerId, max: ofOwner };
      const row = await insertSubscription(call.database.knex, call.project.id, { ...plain, event_types, filter }, max, share);
      return { message: 'subscription created', data: view(row) };
    },
  ),
  listRoute(
    '/subscriptions',
    'Lists subscriptions.',
    { query: ListQuery, title: 'subscriptions', data: Subscription, portal: 'any' },
    ({ database, project, query: { endpointId, q }, ownerId }, page) =>
      listSubscriptions(database.knex, project.id, { endpointId, ownerId }, page, q),
    view,
  ),
  projectRoute(
    'POST /subscriptions/test_filter',
    'Tells whether a filter matches a sample, which is stored nowhere.',
    { role: 'viewer', isAudited: false, body: FilterTest, data: FilterMatch, name: 'testFilter', portal: 'any' },
    ({ body }) => {
      assertValid([...patternProblems(body.event_types, 'event_types'), ...filterProblems(body.filter, 'filter')]);
      const mismatches = mismatchesOf(body);
      const isMatched = (part: string) => mismatches.every((it) => it.part !== part);
      const matches = mismatches.length === 0;
      const data = { matches, headers: isMatched('headers'), body: isMatched('body'), mismatches };
      return Promise.resolve({ message: `the filter ${matches ? 'matches' : 'does not match'}`, data });
    },
  ),
  projectRoute(
    'GET /subscriptions/:id',
    'Shows a subscription.',
    { data: Subscription, portal: 'any' },
    async ({ database, project, id }) => {
      const row = found(await findSubscription(database.knex, project.id, id), 'subscription', id);
      return { message: 'subscription', data: view(row) };
    },
  ),
  projectRoute(
    'PUT /subscriptions/:id',
    'Changes what is given of a subscription.',
    { body: ChangedSubscription, data: Subscription, portal: 'managing' },
    async (call) => {
      await validate(call);
      const { database, project, id, body } = call;
      const row = found(await updateSubscription(database.knex, project.id, id, columnsOf(body)), 'subscription', id);
      return { message: 'subscription updated', data: view(row) };
    },
  ),
  projectRoute(
    'PUT /subscriptions/:id/toggle_status',
    'Disables a subscription, so that it matches nothing, or enables it again.',
    { data: Subscription, portal: 'managing' },
    async ({ database, project, id }) => {
      const row = found(await toggleSubscription(database.knex, project.id, id), 'subscription', id);
      return { message: `subscription ${row.is_disabled ? 'disabled' : 'enabled'}`, data: view(row) };
    },
  ),
  projectRoute('DELETE /subscriptions/:id', 'Deletes a subscription.', { portal: 'managing' }, async ({ database, project, id }) => {
    found(await deleteSubscription(database.knex, project.id, id), 'subscription', id);
    return { message: 'subscription deleted', data: null };
  }),
];

function columnsOf({ filter_config, ...plain }: Static<typeof ChangedSubscription>): Partial<SubscriptionFields> {
  const { event_types, filter } = filter_config ?? {};
  return { ...plain, ...(event_types ? { event_types } : {}), ...(filter ? { filter } : {}) };
}

/** Checks what the schema cannot: the endpoint exists, patterns and filters are valid. */
async function validate({ database, project, body, ownerId }: ProjectCall<Static<typeof ChangedSubscription>>): Promise<void> {
  const { endpoint_id, filter_config } = body;
  const problems: InvalidField[] = [];
  const endpoint = endpoint_id === undefined ? undefined : await findEndpoint(database.knex, project.id, endpoint_id);
  const isOfAnother = ownerId !== undefined && endpoint?.owner_id !== ownerId;
  if (endpoint_id !== undefined && (!endpoint || isOfAnother)) {
    problems.push({ field: 'endpoint_id', sentence: 'is not an endpoint of this project' });
  }
  const { event_types, filter = {} } = filter_config ?? {};
  assertValid([
    ...problems,
    ...patternProblems(event_types, 'filter_config.event_types'),
    ...filterProblems(filter, 'filter_config.filter'),
  ]);
}

type Test = Static<typeof FilterTest>;
type GivenFilter = Test['filter'];

/** What of a sample does not match, as events carry it: names of headers in lower case. */
function mismatchesOf({ event_types: wanted = ['*'], filter, sample }: Test): Static<typeof Mismatch>[] {
  const { event_type: found } = sample;
  const isOther = found !== undefined && !wanted.some((pattern) => matchesType(pattern, found));
  return [
    ...(isOther ? [{ part: 'event_types' as const, wanted, found }] : []),
    ...partMismatch('headers', lowerNames(filter.headers ?? {}), lowerNames(sample.headers ?? {})),
    ...partMismatch('body', filter.body ?? {}, sample.body ?? {}),
  ];
}

function partMismatch(part: 'headers' | 'body', filter: Readonly<Record<string, unknown>>, value: unknown): Static<typeof Mismatch>[] {
  try {
    const mismatch = filterMismatch(filter, value);
    return mismatch ? [{ part, ...mismatch }] : [];
  } catch (error) {
    if (!(error instanceof FilterBudgetError)) throw error;
    throw new GatewayError('invalid_request', { problems: [{ field: `filter.${part}`, sentence: error.message }] });
  }
}

function patternProblems(patterns: readonly string[] = [], place: string): InvalidField[] {
  return patterns.flatMap((pattern, index) =>
    pattern.replace(/(^|\.)\*$/, '').includes('*')
      ? [{ field: `${place}.${index}`, sentence: 'may have * alone or at the end after a dot, as in order.*' }]
      : [],
  );
}

function filterProblems(filter: GivenFilter, place: string): InvalidField[] {
  return (['headers', 'body'] as const).flatMap((part) => {
    try {
      compileFilter(filter[part] ?? {});
      return [];
    } catch (error) {
      return [{ field: `${place}.${part}`, sentence: (error as Error).message }];
    }
  });
}
