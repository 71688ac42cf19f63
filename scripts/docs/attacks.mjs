// @ts-check
/**
 * `also` is protection other than the limits that list this attack in `against`. `tests` prove the
 * protection; they are paths relative to `test`, without the file suffix.
 * @typedef {object} AttackRow
 * @property {'memory' | 'time'} on
 * @property {string} attack
 * @property {string} [also]
 * @property {readonly string[]} tests
 */

/** @typedef {keyof typeof attacks} Attack */

/**
 * Attacks on a process's memory and CPU time. `limits.mjs` lists the limits that guard against
 * each, and the threat model in the docs is generated from both files.
 * @satisfies {Readonly<Record<string, AttackRow>>}
 */
// Two lines per row keep the table readable.
// prettier-ignore
export const attacks = {
  'filters': { on: 'memory', attack: 'filters as large as a body',
    tests: ['core/events/filter', 'server/routes/subscriptions/subscriptions', 'ingest/routing/config-cache'] },
  'bodies': { on: 'memory', attack: 'large bodies, many at a time', also: 'beyond the bytes only the oldest body is read',
    tests: ['server/http/body-room', 'server/server', 'server/api/app'] },
  'answers': { on: 'memory', attack: 'large answers', also: 'counted when they are decompressed',
    tests: ['agent/destinations/http/sender', 'plugins/sources-guarded'] },
  'compressed fetches': { on: 'memory', attack: 'compressed fetches',
    tests: ['plugins/source-kafka-codecs'] },
  'schemas': { on: 'memory', attack: 'schemas that are large, many, or refer to themselves', also: 'no code is made of them',
    tests: ['plugins/codecs/codecs', 'plugins/codecs/hostile'] },
  'refused events': { on: 'memory', attack: 'events that endpoints do not take',
    tests: ['agent/delivery/in-flight', 'reliability/neighbours'] },
  'output': { on: 'memory', attack: 'functions that make a thousand events of each message', also: 'batches by the size of the output',
    tests: ['ingest/transform/transformer'] },
  'subscription functions': { on: 'memory', attack: 'functions of subscriptions: texts, loops, and what they make of small events', also: 'one output for each consumer; after an overrun, what waits returns to Postgres',
    tests: ['agent/attempt/subscription-functions', 'e2e/subscription-functions'] },
  'silent brokers': { on: 'memory', attack: 'sources at a broker that says nothing', also: 'one member asks first',
    tests: ['plugins/sources-guarded', 'server/routes/sources/sources'] },
  'responses': { on: 'memory', attack: 'responses that are large, or of control characters', also: 'characters that Postgres cannot store are replaced in a third of a millisecond',
    tests: ['store/postgres/columns', 'agent/delivery/attempt-writer', 'agent/destinations/http/sender'] },
  'label values': { on: 'memory', attack: 'label values',
    tests: ['core/metrics/meter'] },
  'client certificates': { on: 'memory', attack: 'client certificates',
    tests: ['server/routes/endpoints/client-certificate', 'agent/destinations/http/certified-pools'] },
  'kept messages': { on: 'memory', attack: 'kept messages without end', also: 'deleted by retention',
    tests: ['store/events/kept-messages', 'ingest/commit/event-writer'] },
  'errors': { on: 'memory', attack: 'endpoints that answer with another error each time',
    tests: ['agent/telemetry/issue-counter', 'store/counts/issues'] },
  'event types': { on: 'memory', attack: 'event types without end',
    tests: ['core/routing/route'] },

  'comparisons': { on: 'time', attack: 'filters that compare large objects', also: 'large bodies are parsed in steps',
    tests: ['core/routing/route', 'agent/routing/pending-queues'] },
  'fanout': { on: 'time', attack: 'events for all of a thousand endpoints',
    tests: ['agent/routing/pending-queues'] },
  'changes': { on: 'time', attack: 'changes of a large project without end', also: 'filters that did not change are not compiled again',
    tests: ['ingest/routing/config-cache', 'core/process/slices'] },
  'members': { on: 'time', attack: 'bodies of many small members', also: 'parsed a few kilobytes at a time',
    tests: ['core/json/parse-in-steps', 'agent/routing/plan-deliveries'] },
  'bursts': { on: 'time', attack: 'bursts of messages, results and deliveries',
    tests: ['core/process/loop-shares'] },
  'large messages': { on: 'time', attack: 'large messages, many at a time', also: 'counted before they are parsed',
    tests: ['ingest/pipeline', 'ingest/commit/event-writer', 'plugins/source-kafka', 'plugins/source-sqs'] },
  'encoded messages': { on: 'time', attack: 'messages of Avro or Protobuf that claim to have more than they have', also: 'decoding stops at the length of a message',
    tests: ['plugins/codecs/hostile'] },
  'functions': { on: 'time', attack: 'functions that loop, fill memory or crash', also: 'projects take turns',
    tests: ['sandbox/hostile', 'sandbox/parent/function-queues', 'reliability/hostile-functions'] },
  'names': { on: 'time', attack: 'names whose server is silent', also: 'no attempt of others is used up',
    tests: ['core/http/names', 'agent/delivery/scheduler'] },
  'hanging endpoints': { on: 'time', attack: 'endpoints that hang, trickle, reset', also: 'endpoints take turns',
    tests: ['reliability/neighbours', 'agent/flow-control/gates'] },
  'backlogs': { on: 'time', attack: 'a topic with a backlog, functions that make many events, batches of the API', also: 'projects take turns',
    tests: ['ingest/commit/event-writer', 'server/api/event-pace'] },
  'invalid bodies': { on: 'time', attack: 'invalid bodies', also: 'names are clipped',
    tests: ['server/api/app'] },
  'function tests': { on: 'time', attack: 'function tests without end',
    tests: ['server/routes/sources/test-function', 'server/routes/subscriptions/test-function'] },
  'connection tests': { on: 'time', attack: 'connection tests without end',
    tests: ['server/routes/sources/sources'] },
  'trickling bodies': { on: 'time', attack: 'bodies and headers that trickle, answers that are not read', also: 'a body takes a share only when it is whole; requests of one connection run one after the other',
    tests: ['server/server', 'server/http/body-room'] },
  'webhooks': { on: 'time', attack: 'webhooks without end', also: 'each source counts by itself',
    tests: ['server/ingest/ingest'] },
  'requests': { on: 'time', attack: 'requests without end', also: 'half a second until an answer of 429',
    tests: ['server/auth/request-limit', 'server/auth/login-guard', 'server/routes/people/password', 'server/server'] },
};
