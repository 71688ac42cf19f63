import { isObject, isTooDeep, own } from '@gateway/core/json';

type Members = Record<string, unknown>;
type ConvoyQuery = Readonly<Record<string, string | readonly string[] | undefined>>;

/** These have no effect here. */
const IGNORED_QUERY = ['page', 'groupId', 'groupID', 'appId'];
/** Convoy's clients send these to routes without pages, too. */
const OF_PAGES = ['perPage', 'direction', 'next_page_cursor', 'prev_page_cursor', 'sort'];
/** Go's zero time, which means that no time was given. */
const NO_TIME = '0001-01-01';
const EVENT_STATUSES: Readonly<Record<string, string>> = {
  success: 'processed',
  failure: 'failed',
  processing: 'pending',
  retry: 'pending',
};

/** Drops empty values. */
export function queryOf(
  route: { readonly method: string; readonly path: string },
  query: ConvoyQuery,
): Members {
  // Without a prototype, `__proto__` is an ordinary key.
  const given = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of Object.entries(query)) {
    const values = [value]
      .flat()
      .filter((it): it is string => Boolean(it) && !it!.startsWith(NO_TIME));
    const isOfPages = route.method !== 'get' && OF_PAGES.includes(name);
    if (values.length === 0 || IGNORED_QUERY.includes(name) || isOfPages) continue;
    given[name === 'eventType' ? 'event_type' : name] = values.length === 1 ? values[0]! : values;
  }
  if (given['status'] !== undefined) {
    const isOfEvents = route.path.startsWith('/events');
    const statuses = [given['status']].flat().map((it) => it.toLowerCase());
    const ours = isOfEvents ? statuses.map((it) => own(EVENT_STATUSES, it) ?? it) : statuses;
    given['status'] = ours.length === 1 ? ours[0]! : ours;
  }
  // In Convoy, a batch without a start date begins with the first event.
  if (/\/batch(retry|replay)$/.test(route.path)) given['startDate'] ??= '1970-01-01';
  return given;
}

/**
 * Changes the body in place and returns the names of the removed fields.
 * @param title the title of the body's schema
 */
export function rewriteBody(title: string | undefined, body: unknown): string[] {
  if (!isObject(body)) return [];
  for (const name of Object.keys(body)) if (isNothing(body[name])) delete body[name];
  const rewrite = title === undefined ? undefined : BODIES[title];
  return rewrite?.(body) ?? [];
}

const BODIES: Readonly<Record<string, (body: Members) => string[]>> = {
  CreateEndpoint: endpoint,
  ChangedEndpoint: endpoint,
  CreateSubscription: subscription,
  ChangedSubscription: subscription,
  CreateSource: source,
  ChangedSource: source,
  CreateEvent: (body) => take(body, ['app_id']),
  CreateFanoutEvent: (body) => take(body, ['app_id']),
  CreateProject: project,
  ChangedProject: project,
  CreateEventType: (body) => take(body, ['category']),
  ChangedEventType: (body) => take(body, ['category']),
  OpenApiDocument: document,
  FilterTest: filterTest,
  CreatePortalLink: portalLink,
  ChangedPortalLink: portalLink,
};

/** Convoy clients send the OpenAPI document as a string in `spec`. */
function document(body: Members): string[] {
  const { spec } = body;
  const inner = typeof spec === 'string' ? parsed(spec) : spec;
  if (!isObject(inner)) return [];
  delete body['spec'];
  Object.assign(body, inner);
  return [];
}

/**
 * Convoy calls the filter `schema` and the sample `request`. Path and query are dropped only if
 * empty.
 */
function filterTest(body: Members): string[] {
  for (const [theirs, ours] of [
    ['schema', 'filter'],
    ['request', 'sample'],
  ] as const) {
    const given = body[theirs];
    if (!isObject(given)) continue;
    delete body[theirs];
    const { header: headers, ...rest } = given as Members;
    for (const name of ['query', 'path'])
      if (isNothing(rest[name]) || isEmptyObject(rest[name])) delete rest[name];
    body[ours] = { ...rest, ...(isNothing(headers) || headers === undefined ? {} : { headers }) };
  }
  return [];
}

function portalLink(body: Members): string[] {
  return isEmptyArray(body['endpoints']) ? take(body, ['endpoints']) : [];
}

function endpoint(body: Members): string[] {
  const { authentication, url } = body;
  // Clients before version 1.0 send no name, so the host name is used.
  if (body['name'] === undefined && typeof url === 'string' && URL.canParse(url))
    body['name'] = new URL(url).hostname;
  for (const name of ['http_timeout', 'rate_limit_duration']) body[name] = secondsOf(body[name]);
  if (isObject(authentication)) {
    const given = authentication;
    removeNothings(given);
    if (given['type'] === 'basic_auth')
      Object.assign(given, { type: 'basic', basic: given['basic_auth'], basic_auth: undefined });
  }
  removeUndefined(body);
  const isPlain = (name: string, values: readonly unknown[]) =>
    values.some((it) => JSON.stringify(it) === JSON.stringify(body[name]));
  const harmless = [
    ...(isPlain('events', [['*'], []]) ? ['events'] : []),
    ...(isPlain('content_type', ['application/json']) ? ['content_type'] : []),
    ...(isPlain('is_disabled', [false]) ? ['is_disabled'] : []),
  ];
  return take(body, harmless);
}

function subscription(body: Members): string[] {
  const { filter_config: given } = body;
  if (isObject(given)) {
    const config = given;
    for (const name of Object.keys(config))
      if (isNothing(config[name]) || isEmptyArray(config[name])) delete config[name];
    if (isObject(config['filter'])) {
      const filter = config['filter'];
      for (const part of Object.keys(filter))
        if (isNothing(filter[part]) || isEmptyObject(filter[part])) delete filter[part];
      take(filter, ['is_flattened']);
    }
  }
  const isUsual = body['delivery_mode'] === 'at_least_once';
  return take(body, ['type', 'app_id', ...(isUsual ? ['delivery_mode'] : [])]);
}

function source(body: Members): string[] {
  if (body['type'] === 'http') return httpSource(body);
  const { pub_sub: given } = body;
  if (!isObject(given)) return [];
  removeNothings(given);
  // Convoy clients also send the fields of HTTP sources, which have no meaning here.
  return take(body, [
    'provider',
    'verifier',
    'custom_response',
    ...(isNothing(body['forward_headers']) ? ['forward_headers'] : []),
    ...(isEmptyArray(body['idempotency_keys']) ? ['idempotency_keys'] : []),
  ]);
}

/** Convoy clients send complete verifiers, so no provider is needed. */
function httpSource(body: Members): string[] {
  removeNothings(body);
  const { verifier, custom_response: custom } = body;
  if (isObject(verifier))
    for (const name of ['basic_auth', 'api_key', 'hmac'])
      if (name !== verifier['type']) delete verifier[name];
  if (isObject(custom)) {
    if (isEmptyObject(custom)) delete body['custom_response'];
    else custom['content_type'] ??= 'text/plain';
  }
  return take(body, ['provider', 'pub_sub']);
}

const PROJECT_IGNORED = ['logo_url', 'rate_limit', 'rate_limit_duration'];
const CONFIG_IGNORED = [
  ...[
    'disable_endpoint',
    'replay_attacks',
    'replay_attacks_prevention_enabled',
    'add_event_id_trace_headers',
    'max_payload_read_size',
  ],
  ...[
    'retention_policy',
    'is_retention_policy_enabled',
    'multiple_endpoint_subscriptions',
    'search_policy',
    'ssl',
    'meta_event',
  ],
];

function project(body: Members): string[] {
  const { config } = body;
  if (!isObject(config)) return take(body, PROJECT_IGNORED);
  const given = config;
  removeNothings(given);
  const ignored = take(given, CONFIG_IGNORED).map((name) => `config.${name}`);
  const { strategy, signature } = given;
  if (isObject(strategy)) {
    // Convoy's groups nest the strategy in `default` and name its fields differently.
    const { default: before, ...rest } = strategy;
    const { intervalSeconds: duration, retryLimit: retries } = (before ?? {}) as Members;
    given['strategy'] = {
      ...(before === undefined ? {} : { duration, retry_count: retries }),
      ...rest,
    };
    if (rest['type'] === 'default') Object.assign(given['strategy'] as Members, { type: 'linear' });
  }
  if (isObject(signature)) {
    const { versions, ...rest } = signature;
    const latest = Array.isArray(versions) ? (versions.at(-1) as Members | undefined) : undefined;
    given['signature'] = {
      ...rest,
      ...(latest && { hash: latest['hash'], encoding: latest['encoding'] }),
    };
  }
  return [...take(body, PROJECT_IGNORED), ...ignored];
}

function take(body: Members, names: readonly string[]): string[] {
  const found = names.filter((name) => Object.hasOwn(body, name));
  for (const name of found) delete body[name];
  return found;
}

/**
 * Clients before 2024 send durations such as `10s` or `1m30s`. Other values are returned unchanged.
 */
function secondsOf(value: unknown): unknown {
  const parts =
    typeof value === 'string' ? /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(value) : null;
  if (!parts) return value;
  const [hours = 0, minutes = 0, seconds = 0] = parts.slice(1).map((it) => Number(it ?? 0));
  return hours * 3600 + minutes * 60 + seconds;
}

function removeNothings(value: Members): void {
  for (const [name, member] of Object.entries(value)) {
    if (isNothing(member)) delete value[name];
    else if (isObject(member)) removeNothings(member);
  }
}

function removeUndefined(value: Members): void {
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) delete value[name];
    else if (isObject(member)) removeUndefined(member);
  }
}

function parsed(text: string): unknown {
  if (isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isNothing(value: unknown): boolean {
  return value === null || value === '';
}

function isEmptyArray(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function isEmptyObject(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}
