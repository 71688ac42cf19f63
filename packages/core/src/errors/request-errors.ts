import { composed, row, type InvalidField } from './error-row.js';

/** Requests to the control plane, and what commands ask for. */
export const requestErrors = {
  not_found: row<{ thing: string; id?: string; fix?: string }>({
    http: 404,
    message: ({ thing, id }) => (id === undefined ? `${thing} not found` : `${thing} ${id} not found`),
    fix: ({ fix }) => fix ?? 'check the id, and that the key may see the project it belongs to',
  }),
  unauthorized: row<{ reason: string; fix: string }>({
    http: 401,
    message: ({ reason }) => reason,
    fix: ({ fix }) => fix,
  }),
  too_many_requests: row<{ limit: number; retryAfterSeconds: number }>({
    http: 429,
    message: ({ limit }) => `this credential made more than ${limit} requests in one second (api_rate_limit)`,
    fix: ({ retryAfterSeconds }) =>
      `wait ${retryAfterSeconds} s, as Retry-After says, and send requests more slowly; the operator can raise the limit with --api-rate-limit or GATEWAY_API_RATE_LIMIT`,
  }),
  database_away: row<{ outcome: string; retryAfterSeconds: number }>({
    http: 503,
    message: ({ outcome }) => `the database of the gateway cannot be reached: ${outcome}`,
    fix: ({ retryAfterSeconds }) =>
      `send the request again after ${retryAfterSeconds} s, as Retry-After says; the operator can find the reason in the log of the server and at /healthz?ready`,
  }),
  database_takes_no_writes: row<{ outcome: string; retryAfterSeconds: number }>({
    http: 503,
    message: ({ outcome }) => `the database of the gateway accepts no writes: ${outcome}`,
    fix: ({ retryAfterSeconds }) =>
      `send the request again after ${retryAfterSeconds} s, as Retry-After says; requests that only read are still answered; the operator can find the reason in the log of the server`,
  }),
  kv_away: row<{ outcome: string; retryAfterSeconds: number }>({
    http: 503,
    message: ({ outcome }) => `the KV store of the gateway cannot be reached: ${outcome}`,
    fix: ({ retryAfterSeconds }) =>
      `send the request again after ${retryAfterSeconds} s, as Retry-After says; the operator can find the reason in the log of the server`,
  }),
  forbidden: row<{ reason: string }>({
    http: 403,
    message: ({ reason }) => reason,
    fix: () => 'use an API key of a user or project that may do this',
  }),
  conflict: row<{ sentence: string; fix?: string }>({
    http: 409,
    message: ({ sentence }) => sentence,
    fix: ({ fix }) => fix ?? 'read the current state and try again',
  }),
  invalid_request: row<{ problems: readonly InvalidField[] }>({
    http: 422,
    message: ({ problems }) => problems.map((it) => `${it.field}: ${it.sentence}`).join('; '),
    fix: () => 'correct the named fields',
  }),
  bad_body: row<{ reason: string }>({
    http: 400,
    message: ({ reason }) => `the body ${reason}`,
    fix: () => 'send a JSON object in UTF-8',
  }),
  body_too_large: row<{ limit: number }>({
    http: 413,
    message: ({ limit }) => `the body is larger than ${limit} bytes`,
    fix: () => 'send less at once; for events the limit is ingest.max_message_bytes (GATEWAY_INGEST_MAX_MESSAGE_BYTES)',
  }),
  unsupported_media_type: row<{ given: string }>({
    http: 415,
    message: ({ given }) => (given ? `the content type ${given} is not supported` : 'the request has no content type'),
    fix: () => 'send JSON with `content-type: application/json` and without a content encoding',
  }),
  method_not_allowed: row<{ method: string; path: string; allowed: string }>({
    http: 405,
    message: ({ method, path }) => `${path} does not support ${method}`,
    fix: ({ allowed }) => `use ${allowed}`,
  }),
  source_check_failed: row<{ kind: string; reason: string; fix: string }>({
    http: 422,
    message: ({ kind, reason }) => `the ${kind} connection does not work: ${reason}`,
    fix: ({ fix }) => fix,
  }),
  quarantined_unknown: row<{ unknown: readonly string[] }>({
    http: 404,
    message: ({ unknown }) => `there is no quarantined message ${unknown.join(', ')}; nothing was done`,
    fix: () => '`gateway utils quarantine list` shows the ids; messages of deleted projects are deleted too',
  }),
  editor_failed: row<{ editor: string; reason: string }>({
    message: ({ editor, reason }) => `the editor \`${editor}\` ${reason}; the message is unchanged`,
    fix: () =>
      'set VISUAL or EDITOR to a command that returns when the file is closed, such as `code --wait`, or give the bytes with --file',
  }),
  event_unknown: composed({ http: 404 }),
  openapi_broken: row<{ file: string; reason: string; fix?: string }>({
    http: 422,
    message: ({ file, reason }) => `${file}: ${reason}`,
    fix: ({ fix }) => fix ?? 'correct the document; see docs/guides/openapi.md for what is read from it',
  }),
  event_type_twice: row<{ name: string; first: string; second: string }>({
    http: 409,
    message: ({ name, first, second }) => `the event type ${name} is declared twice: by ${first} and by ${second}`,
    fix: () => 'rename one of the two, or import the documents one at a time',
  }),
  email_in_use: row<{ email: string }>({
    http: 409,
    message: ({ email }) => `a user with the email ${email} already exists`,
    fix: () => 'choose another email',
  }),
  internal: row<{ reason: string }>({
    message: ({ reason }) => reason,
    fix: () => 'this is a bug in the gateway: run the command again with --log-level=debug and report the output',
  }),
} as const;
