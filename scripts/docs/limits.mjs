// @ts-check
// Data of the page of limits and of the threat model.

/** The four kinds of limit, as described in the docs. */
export const mechanisms = {
  bucket: 'So much in a time. What is beyond goes on when time has passed.',
  share:
    'A part of something common: memory, processor time, connections. The more others use, the smaller it is.',
  window: 'So many at a time. The next one begins when one ends.',
  cap: 'So large, so long or so many at most.',
};

export const effects = {
  waits: 'It waits for its turn in the process.',
  stays: 'It stays where it is stored, with its broker or in Postgres, until there is room.',
  apart: 'It is worked on apart, so that others do not wait for it.',
  cut: 'It is kept in part, or not at all.',
  forgotten: 'The oldest, or the least used, is dropped, and read or made again when it is needed.',
  folded: 'It is counted together with others.',
  quarantined: 'The message is quarantined with the reason.',
  fails: 'The event, the delivery attempt or the test fails with the reason.',
  paused: 'Nothing is sent to the endpoint, or read from the source, for a while.',
  closed: 'The connection is closed, and opened again later.',
  skipped: 'What was loaded before stays in use, and the log says so.',
  408: 'The request is answered with 408.',
  409: 'It is refused with 409 when it is saved.',
  413: 'The request is answered with 413.',
  422: 'It is refused with 422 when it is saved.',
  429: 'The request is answered with 429 and `Retry-After`.',
};

/**
 * Names what each instance of a limit applies to. `process` means each agent or server.
 * @typedef {'instance' | 'process' | 'organisation' | 'project' | 'owner' | 'link' | 'user' | 'credential' | 'address' | 'stranger' | 'connection' | 'source' | 'endpoint' | 'subscription' | 'function' | 'message'} LimitScope
 */

/**
 * `stage` is the module that applies the limit, such as `agent/delivery/scheduler`.
 * @typedef {object} LimitEffect
 * @property {string} stage
 * @property {LimitScope} scope
 * @property {keyof typeof mechanisms} mechanism
 * @property {readonly `${keyof typeof effects}`[]} beyond
 * @property {readonly import('./attacks.mjs').Attack[]} [against]
 */

/**
 * A limit is a setting, a constant in the stage's source, or an API field. A constant's name
 * includes its unit, if it has one (`BYTES`, `MS`, `SECONDS`, `CHARS`), because `npm run docs`
 * reads constants from the source.
 * @typedef {LimitEffect & ({ readonly setting: keyof typeof import('#core/config/settings').settings } | { readonly what: string, readonly constant: string } | { readonly what: string, readonly field: string })} LimitRow
 */

/**
 * The limits, in the order in which a message or request reaches them. `docs/reference/limits.md`
 * and the threat model are generated from them.
 * @type {Readonly<Record<string, readonly LimitRow[]>>}
 */
// Two lines per row keep the table readable.
// prettier-ignore
export const limits = {
  'Configuration': [
    { setting: 'limits.endpoints_per_project', stage: 'server/routes/endpoints/endpoints',
      scope: 'project', mechanism: 'cap', beyond: ['422'], against: ['filters', 'fanout'] },
    { setting: 'limits.subscriptions_per_project', stage: 'server/routes/subscriptions/subscriptions',
      scope: 'project', mechanism: 'cap', beyond: ['422'], against: ['filters', 'comparisons'] },
    { setting: 'limits.sources_per_project', stage: 'server/routes/sources/sources',
      scope: 'project', mechanism: 'cap', beyond: ['422'], against: ['silent brokers'] },
    { setting: 'limits.workers_per_project', stage: 'server/routes/sources/sources',
      scope: 'project', mechanism: 'cap', beyond: ['422'], against: ['silent brokers'] },
    { setting: 'limits.event_types_per_project', stage: 'server/routes/event-types',
      scope: 'project', mechanism: 'cap', beyond: ['422'], against: ['event types'] },
    { setting: 'limits.client_certificates_per_project', stage: 'server/routes/endpoints/endpoints',
      scope: 'project', mechanism: 'cap', beyond: ['422'], against: ['client certificates'] },
    { setting: 'limits.api_keys_per_project', stage: 'server/routes/people/api-keys',
      scope: 'project', mechanism: 'cap', beyond: ['422'] },
    { setting: 'limits.portal_links_per_project', stage: 'server/routes/people/portal-links',
      scope: 'project', mechanism: 'cap', beyond: ['422'] },
    { setting: 'limits.endpoints_per_owner', stage: 'server/routes/endpoints/endpoints',
      scope: 'owner', mechanism: 'cap', beyond: ['422'] },
    { setting: 'limits.subscriptions_per_owner', stage: 'server/routes/subscriptions/subscriptions',
      scope: 'owner', mechanism: 'cap', beyond: ['422'] },
    { setting: 'limits.organisations_per_user', stage: 'server/routes/people/organisations',
      scope: 'user', mechanism: 'cap', beyond: ['409'] },
    { setting: 'limits.invitations_per_organisation', stage: 'server/routes/people/organisations',
      scope: 'organisation', mechanism: 'cap', beyond: ['409'] },
    { setting: 'limits.failure_threshold', stage: 'server/routes/projects',
      scope: 'project', mechanism: 'cap', beyond: ['422'], against: ['hanging endpoints'] },
    { setting: 'limits.minimum_request_count', stage: 'server/routes/projects',
      scope: 'project', mechanism: 'cap', beyond: ['422'], against: ['hanging endpoints'] },
    { setting: 'limits.idempotency_keys_per_credential', stage: 'server/api/idempotency',
      scope: 'credential', mechanism: 'cap', beyond: ['forgotten'] },
    { constant: 'FILTER_BYTES_MAX', what: 'a filter as JSON', stage: 'core/events/filter',
      scope: 'subscription', mechanism: 'cap', beyond: ['422'], against: ['filters'] },
    { constant: 'FILTER_NODES_MAX', what: 'values in a filter', stage: 'core/events/filter',
      scope: 'subscription', mechanism: 'cap', beyond: ['422'], against: ['filters'] },
    { constant: 'FILTER_DEPTH_MAX', what: 'levels of a filter', stage: 'core/events/filter',
      scope: 'subscription', mechanism: 'cap', beyond: ['422'], against: ['filters'] },
    { constant: 'FUNCTION_CHARS_MAX', what: 'the text of a function', stage: 'server/routes/transform-function',
      scope: 'function', mechanism: 'cap', beyond: ['422'], against: ['subscription functions'] },
    { constant: 'CERT_MAX', what: 'characters of a client certificate', stage: 'server/routes/endpoints/client-certificate',
      scope: 'endpoint', mechanism: 'cap', beyond: ['422'], against: ['client certificates'] },
    { constant: 'KEY_MAX', what: 'characters of its key', stage: 'server/routes/endpoints/client-certificate',
      scope: 'endpoint', mechanism: 'cap', beyond: ['422'], against: ['client certificates'] },
    { constant: 'LIVE_SECRETS_MAX', what: 'valid secrets of an endpoint', stage: 'store/config/secrets',
      scope: 'endpoint', mechanism: 'cap', beyond: ['409'] },
    { constant: 'PROJECT_BYTES_MAX', what: 'the configuration of a project, as an agent reads it', stage: 'ingest/routing/config-cache',
      scope: 'project', mechanism: 'cap', beyond: ['skipped'], against: ['filters'] },
    { setting: 'limits.event_loop_ms', stage: 'ingest/routing/config-cache',
      scope: 'project', mechanism: 'bucket', beyond: ['waits'], against: ['changes'] },
  ],

  'Requests to the API and to HTTP sources': [
    { setting: 'api_rate_limit', stage: 'server/auth/request-limit',
      scope: 'credential', mechanism: 'bucket', beyond: ['429'], against: ['requests', 'webhooks'] },
    { setting: 'portal.requests_per_second', stage: 'server/auth/request-limit',
      scope: 'link', mechanism: 'bucket', beyond: ['429'], against: ['requests'] },
    { setting: 'server.connection_tests', stage: 'server/auth/request-limit',
      scope: 'project', mechanism: 'bucket', beyond: ['429'], against: ['connection tests'] },
    { setting: 'server.function_tests', stage: 'server/auth/request-limit',
      scope: 'project', mechanism: 'bucket', beyond: ['429'], against: ['function tests'] },
    { setting: 'server.auth.max_failures', stage: 'server/auth/login-guard',
      scope: 'address', mechanism: 'bucket', beyond: ['429'], against: ['requests'] },
    { constant: 'WRONG_MAX', what: 'wrong tokens of `/metrics` within a minute', stage: 'core/exposition/metrics-endpoint',
      scope: 'address', mechanism: 'bucket', beyond: ['429'] },
    { constant: 'OWN_MAX', what: 'logins of an address that wait for a password to be hashed', stage: 'server/routes/people/password',
      scope: 'address', mechanism: 'window', beyond: ['429'], against: ['requests'] },
    { setting: 'server.project_concurrency', stage: 'server/api/shares',
      scope: 'project', mechanism: 'window', beyond: ['waits', '429'], against: ['requests', 'webhooks', 'bodies'] },
    { setting: 'server.http.body_timeout_seconds', stage: 'server/http/body-room',
      scope: 'message', mechanism: 'cap', beyond: ['408'], against: ['trickling bodies'] },
    { constant: 'ROOM_BYTES', what: 'bodies of one sender that are being received', stage: 'server/http/body-room',
      scope: 'credential', mechanism: 'share', beyond: ['waits', '429'], against: ['bodies', 'trickling bodies'] },
    { constant: 'STRANGERS_BYTES', what: 'bodies of all senders that have not proven who they are', stage: 'server/http/body-room',
      scope: 'stranger', mechanism: 'share', beyond: ['waits', '429'], against: ['bodies', 'trickling bodies'] },
    { constant: 'LARGE_BYTES', what: 'a body that is no message', stage: 'server/api/shares',
      scope: 'message', mechanism: 'cap', beyond: ['413'], against: ['bodies'] },
    { constant: 'PROBLEMS_MAX', what: 'wrong fields of a body that an answer describes', stage: 'server/http/schema',
      scope: 'message', mechanism: 'cap', beyond: ['cut'], against: ['invalid bodies'] },
    { constant: 'BATCH_MAX', what: 'events of a batch', stage: 'server/routes/events/events',
      scope: 'message', mechanism: 'cap', beyond: ['422'], against: ['backlogs'] },
    { constant: 'PER_PAGE_MAX', what: 'rows of a page of a list', stage: 'server/http/list-query',
      scope: 'message', mechanism: 'cap', beyond: ['422'] },
    { constant: 'WORK_MAX', what: 'comparisons of filters of an explanation', stage: 'server/explain/explain-route',
      scope: 'message', mechanism: 'cap', beyond: ['cut'] },
    { constant: 'HEADERS_TIMEOUT_MS', what: 'time for the headers of a request', stage: 'core/http/listen',
      scope: 'connection', mechanism: 'cap', beyond: ['closed'], against: ['trickling bodies'] },
    { constant: 'STILL_MS', what: 'time in which nothing moves on a connection', stage: 'core/http/listen',
      scope: 'connection', mechanism: 'cap', beyond: ['closed'], against: ['trickling bodies'] },
  ],

  'Sources': [
    { setting: 'ingest.window', stage: 'plugin/source',
      scope: 'source', mechanism: 'window', beyond: ['stays'], against: ['backlogs'] },
    { constant: 'IN_FLIGHT_BYTES', what: 'messages of a reader that are not settled', stage: 'plugin/source',
      scope: 'source', mechanism: 'window', beyond: ['stays'], against: ['large messages'] },
    { constant: 'AGENT_IN_FLIGHT_BYTES', what: 'messages of all readers of an agent that are not settled', stage: 'plugin/source',
      scope: 'process', mechanism: 'window', beyond: ['stays'], against: ['large messages'] },
    { constant: 'SOURCE_MAX_BYTES', what: 'fetched batches that a Kafka source has decompressed', stage: 'source-kafka/memory',
      scope: 'source', mechanism: 'share', beyond: ['stays'], against: ['compressed fetches'] },
    { constant: 'AGENT_MAX_BYTES', what: 'fetched batches that all Kafka sources of an agent have decompressed', stage: 'source-kafka/memory',
      scope: 'process', mechanism: 'share', beyond: ['stays'], against: ['compressed fetches'] },
    { constant: 'ANSWER_MAX_BYTES', what: 'an answer of a Kafka broker', stage: 'source-kafka/client',
      scope: 'connection', mechanism: 'cap', beyond: ['closed'], against: ['answers'] },
    { constant: 'CHECK_ANSWER_MAX_BYTES', what: 'an answer of a Kafka broker in a connection test', stage: 'source-kafka/index',
      scope: 'connection', mechanism: 'cap', beyond: ['fails'], against: ['answers', 'connection tests'] },
    { constant: 'READ_ANSWER_BYTES', what: 'an answer of an HTTP server, such as SQS, to a source', stage: 'core/plugins/guarded-source',
      scope: 'connection', mechanism: 'cap', beyond: ['closed'], against: ['answers'] },
    { constant: 'CHECK_ANSWER_BYTES', what: 'an answer of an HTTP server in a connection test', stage: 'core/plugins/guarded-source',
      scope: 'connection', mechanism: 'cap', beyond: ['fails'], against: ['answers', 'connection tests'] },
    { constant: 'ANSWER_MAX_BYTES', what: "an answer of a Kafka source's token endpoint", stage: 'source-kafka/oauth-bearer',
      scope: 'source', mechanism: 'cap', beyond: ['fails'], against: ['answers'] },
    { constant: 'MESSAGES_MAX', what: 'messages that a push source makes of a request', stage: 'core/plugins/guarded-push',
      scope: 'message', mechanism: 'cap', beyond: ['fails'], against: ['webhooks'] },
    { constant: 'LOOKUPS_PER_SOURCE', what: 'names that a source has looked up at a time', stage: 'core/http/ssrf-guard',
      scope: 'source', mechanism: 'window', beyond: ['waits'], against: ['names'] },
    { constant: 'STARTS_PER_SECOND', what: 'sources of a project that start in a second', stage: 'agent/sources/source-runner',
      scope: 'project', mechanism: 'bucket', beyond: ['waits'], against: ['silent brokers'] },
    { constant: 'JOIN_AT_ONCE', what: 'members of a Kafka source that join its group at a time', stage: 'source-kafka/index',
      scope: 'source', mechanism: 'window', beyond: ['waits'], against: ['silent brokers'] },
  ],

  'Messages': [
    { setting: 'instance_ingest_rate', stage: 'agent/flow-control/throttle',
      scope: 'instance', mechanism: 'bucket', beyond: ['waits'], against: ['backlogs'] },
    { setting: 'limits.events_per_second', stage: 'ingest/pipeline',
      scope: 'project', mechanism: 'bucket', beyond: ['waits', '429'], against: ['backlogs', 'large messages', 'webhooks', 'kept messages'] },
    { setting: 'limits.event_loop_ms', stage: 'core/process/loop-shares',
      scope: 'project', mechanism: 'share', beyond: ['waits'], against: ['bursts'] },
    { setting: 'ingest.max_message_bytes', stage: 'ingest/decode/decode',
      scope: 'message', mechanism: 'cap', beyond: ['quarantined', '413'], against: ['bodies', 'large messages'] },
    { constant: 'NESTING_MAX', what: 'levels of a message', stage: 'core/json/json-value',
      scope: 'message', mechanism: 'cap', beyond: ['quarantined'], against: ['members'] },
    { constant: 'SLICE_MS', what: 'work that the event loop does at a time', stage: 'core/process/slices',
      scope: 'process', mechanism: 'share', beyond: ['waits'], against: ['large messages', 'changes', 'members', 'output'] },
  ],

  'Functions': [
    { setting: 'transform.deadline_ms', stage: 'sandbox/parent/deadline',
      scope: 'function', mechanism: 'cap', beyond: ['quarantined', 'fails'], against: ['functions', 'function tests'] },
    { setting: 'transform.memory_mb', stage: 'sandbox/parent/confinement',
      scope: 'function', mechanism: 'cap', beyond: ['quarantined', 'fails'], against: ['functions', 'function tests'] },
    { setting: 'transform.max_output_bytes', stage: 'sandbox/child/call',
      scope: 'function', mechanism: 'cap', beyond: ['quarantined', 'fails'], against: ['functions', 'subscription functions'] },
    { constant: 'MAX_ITEMS', what: 'events that a function makes of a message', stage: 'sandbox/protocol/protocol',
      scope: 'function', mechanism: 'cap', beyond: ['quarantined'], against: ['output'] },
    { setting: 'transform.processes', stage: 'sandbox/parent/function-queues',
      scope: 'project', mechanism: 'share', beyond: ['waits'], against: ['functions'] },
    { constant: 'SHARE', what: 'a core, for a function that may overrun', stage: 'sandbox/parent/cpu-share',
      scope: 'function', mechanism: 'share', beyond: ['waits'], against: ['functions'] },
    { constant: 'TRIAL_MS', what: 'time of a first call while a new function of another project waits', stage: 'sandbox/parent/sandbox',
      scope: 'function', mechanism: 'cap', beyond: ['waits'], against: ['functions'] },
    { constant: 'MAX_REST_MS', what: 'rest of a project whose functions overrun', stage: 'sandbox/parent/function-queues',
      scope: 'project', mechanism: 'bucket', beyond: ['waits'], against: ['functions'] },
    { setting: 'transform.pause_overruns', stage: 'ingest/transform/overruns',
      scope: 'project', mechanism: 'bucket', beyond: ['paused'], against: ['functions'] },
    { constant: 'OUTPUT_BYTES_MAX', what: 'output of the functions of a project that waits for its commit', stage: 'ingest/transform/transformer',
      scope: 'project', mechanism: 'window', beyond: ['waits'], against: ['output'] },
    { constant: 'KEPT_MAX', what: 'functions of subscriptions whose texts an agent keeps', stage: 'agent/attempt/subscription-functions',
      scope: 'process', mechanism: 'cap', beyond: ['forgotten'], against: ['subscription functions'] },
  ],

  'Commits and routing': [
    { setting: 'ingest.batch_size', stage: 'ingest/commit/event-writer',
      scope: 'process', mechanism: 'cap', beyond: ['waits'], against: ['output'] },
    { constant: 'BATCH_BYTES', what: 'events of one commit', stage: 'ingest/commit/event-writer',
      scope: 'process', mechanism: 'cap', beyond: ['waits'], against: ['large messages'] },
    { constant: 'KEPT_BYTES_MAX', what: 'a message that its source keeps', stage: 'store/events/kept-messages',
      scope: 'message', mechanism: 'cap', beyond: ['cut'], against: ['kept messages'] },
    { setting: 'limits.routing_work', stage: 'ingest/routing/matcher',
      scope: 'project', mechanism: 'bucket', beyond: ['stays'], against: ['comparisons', 'fanout'] },
    { constant: 'FILTER_STEPS_MAX', what: 'comparisons of the filters of a project for one event', stage: 'core/events/filter',
      scope: 'message', mechanism: 'cap', beyond: ['fails'], against: ['comparisons'] },
    { constant: 'BODY_AT_ONCE_MAX', what: 'characters of a body that filters look at', stage: 'ingest/routing/matcher',
      scope: 'message', mechanism: 'share', beyond: ['apart'], against: ['comparisons', 'members'] },
    { constant: 'LARGE_MAX', what: 'events with larger bodies that are routed apart', stage: 'agent/routing/pending-queues',
      scope: 'process', mechanism: 'window', beyond: ['stays'], against: ['comparisons'] },
    { constant: 'REMEMBERED_TYPES_MAX', what: 'event types of a project whose subscriptions are remembered', stage: 'core/routing/route',
      scope: 'project', mechanism: 'cap', beyond: ['forgotten'], against: ['event types'] },
  ],

  'Deliveries': [
    { setting: 'delivery.max_outstanding', stage: 'agent/delivery/delivery-room',
      scope: 'project', mechanism: 'share', beyond: ['stays'], against: ['refused events'] },
    { setting: 'delivery.max_outstanding_bytes', stage: 'agent/delivery/delivery-room',
      scope: 'project', mechanism: 'share', beyond: ['stays'], against: ['refused events'] },
    { setting: 'consumer_pool_size', stage: 'agent/flow-control/endpoint-queue',
      scope: 'endpoint', mechanism: 'share', beyond: ['waits'], against: ['hanging endpoints', 'subscription functions'] },
    { setting: 'delivery.endpoint_concurrency', stage: 'agent/flow-control/gates',
      scope: 'endpoint', mechanism: 'window', beyond: ['waits'], against: ['hanging endpoints'] },
    { constant: 'KINDS_MAX', what: 'kinds of error of an endpoint that are issues of their own', stage: 'store/counts/issues',
      scope: 'endpoint', mechanism: 'cap', beyond: ['folded'], against: ['errors'] },
    { constant: 'ISSUES_MAX', what: 'issues of a project', stage: 'store/counts/issues',
      scope: 'project', mechanism: 'cap', beyond: ['cut'], against: ['errors'] },
    { constant: 'PROJECT_GROUPS_MAX', what: 'issues of a project that an agent counts between two writes', stage: 'agent/telemetry/issue-counter',
      scope: 'project', mechanism: 'cap', beyond: ['cut'], against: ['errors'] },
    { setting: 'delivery.lookups_per_project', stage: 'core/http/names',
      scope: 'project', mechanism: 'window', beyond: ['waits', 'stays'], against: ['names'] },
    { constant: 'LOOKUP_MS', what: 'time for the name servers of a name', stage: 'core/http/names',
      scope: 'endpoint', mechanism: 'cap', beyond: ['fails'], against: ['names'] },
    { constant: 'SLOW_WAITING_MAX', what: 'deliveries of an endpoint that wait in memory while it is slow or its breaker is probed', stage: 'agent/flow-control/endpoint-queue',
      scope: 'endpoint', mechanism: 'window', beyond: ['stays'], against: ['hanging endpoints'] },
    { field: 'rate_limit', what: 'requests to an endpoint, or `config.ratelimit` of its project', stage: 'agent/flow-control/rate-limits',
      scope: 'endpoint', mechanism: 'bucket', beyond: ['waits', 'stays'] },
    { setting: 'circuit_breaker.failure_threshold', stage: 'agent/flow-control/circuit-breakers',
      scope: 'endpoint', mechanism: 'bucket', beyond: ['paused'], against: ['hanging endpoints'] },
  ],

  'Requests to endpoints': [
    { field: 'http_timeout', what: 'time from connecting to the last byte of the answer', stage: 'agent/destinations/http/sender',
      scope: 'endpoint', mechanism: 'cap', beyond: ['fails'], against: ['hanging endpoints'] },
    { setting: 'max_response_size', stage: 'agent/destinations/http/sender',
      scope: 'endpoint', mechanism: 'cap', beyond: ['cut'], against: ['answers'] },
    { setting: 'limits.response_bytes_per_second', stage: 'agent/destinations/http/sender',
      scope: 'project', mechanism: 'bucket', beyond: ['cut'], against: ['responses'] },
    { constant: 'HEAD_MAX', what: 'characters of the headers of an answer', stage: 'core/http/response-head',
      scope: 'connection', mechanism: 'cap', beyond: ['fails'], against: ['answers'] },
    { constant: 'DRAIN_BYTES', what: 'an answer that is read beyond what is kept', stage: 'agent/destinations/http/sender',
      scope: 'connection', mechanism: 'cap', beyond: ['closed'], against: ['answers'] },
    { constant: 'BATCH_BODIES_MAX', what: 'characters of responses that are recorded together', stage: 'agent/delivery/attempt-writer',
      scope: 'process', mechanism: 'cap', beyond: ['waits'], against: ['responses'] },
    { constant: 'TOKEN_MAX', what: 'characters of an access token', stage: 'agent/destinations/http/access-tokens',
      scope: 'endpoint', mechanism: 'cap', beyond: ['fails'], against: ['answers'] },
    { constant: 'CERTIFICATES_MAX', what: 'client certificates whose connections an agent keeps', stage: 'agent/destinations/http/certified-pools',
      scope: 'process', mechanism: 'cap', beyond: ['forgotten'], against: ['client certificates'] },
  ],

  'Series and caches': [
    { setting: 'metrics.max_label_sets', stage: 'core/metrics/label-cardinality',
      scope: 'process', mechanism: 'cap', beyond: ['folded'], against: ['label values'] },
    { constant: 'RECORDS_MAX', what: 'keys, projects and memberships that a server keeps for a second', stage: 'server/auth/record-cache',
      scope: 'process', mechanism: 'cap', beyond: ['forgotten'] },
    { constant: 'BUCKETS_MAX', what: 'buckets that a process keeps', stage: 'core/process/token-buckets',
      scope: 'process', mechanism: 'cap', beyond: ['forgotten'] },
  ],
};
