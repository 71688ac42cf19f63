import { Type } from '@sinclair/typebox';
import type { BreakerView } from '@gateway/store/kv';
import {
  ignoring,
  object,
  Id,
  integer,
  Name,
  named,
  nullable,
  oneOf,
  StrategySchema,
  Timestamp,
  Word,
} from '../../http/schema.js';
import { GivenCertificate, ShownCertificate } from './client-certificate.js';

export const TIMEOUT_SECONDS = 10;
const Secret = Type.String({
  maxLength: 200,
  description:
    '`whsec_` and base64 of 24 to 64 bytes, or any text of 12 characters or more, whose UTF-8 bytes are the key; made when it is left out.',
});

const Authentication = object({
  type: oneOf(['api_key', 'basic', 'bearer', 'oauth2']),
  api_key: Type.Optional(
    object({
      header_name: Type.String({ minLength: 1, maxLength: 200 }),
      header_value: Type.String({ minLength: 1, maxLength: 4096 }),
    }),
  ),
  basic: Type.Optional(
    object({
      username: Type.String({
        maxLength: 1024,
        pattern: '^[^:]*$',
        'x-sentence': 'must not contain a colon',
      }),
      password: Type.String({ maxLength: 4096 }),
    }),
  ),
  bearer: Type.Optional(object({ token: Type.String({ minLength: 1, maxLength: 4096 }) })),
  oauth2: Type.Optional(
    object({
      url: Type.String({
        minLength: 1,
        maxLength: 2048,
        description: 'Of the token server, which is asked for client credentials (RFC 6749, 4.4).',
      }),
      client_id: Type.String({ minLength: 1, maxLength: 1024 }),
      client_secret: Type.String({ minLength: 1, maxLength: 4096 }),
      scope: Type.Optional(Type.String({ maxLength: 2048 })),
      audience: Type.Optional(Type.String({ maxLength: 2048 })),
    }),
  ),
});

const optional = {
  owner_id: Type.Optional(nullable(Word)),
  description: Type.Optional(Type.String({ maxLength: 2000 })),
  authentication: Type.Optional(nullable(Authentication)),
  mtls_client_cert: Type.Optional(nullable(GivenCertificate)),
  http_timeout: Type.Optional(
    Type.Number({
      minimum: 0.1,
      maximum: 120,
      description: `Seconds that a request may take; ${TIMEOUT_SECONDS} when it is left out.`,
    }),
  ),
  concurrency: Type.Optional(
    nullable(integer(1, 10_000, 'Requests under way at a time, per agent.')),
  ),
  strategy: Type.Optional(nullable(StrategySchema)),
  rate_limit: Type.Optional(
    nullable(
      integer(
        0,
        1_000_000,
        "Requests in `rate_limit_duration` at most, of all agents together; 0 is no limit, null the project's.",
      ),
    ),
  ),
  rate_limit_duration: Type.Optional(
    nullable(integer(1, 86_400, 'Seconds that `rate_limit` is for; 1 when it is left out.')),
  ),
};
const Url = Type.String({
  minLength: 1,
  maxLength: 2048,
  format: 'uri',
  examples: ['https://example.com/webhooks'],
});

/** Alerts, which the instance's notifications replace, and behaviour that is fixed here. */
const IGNORED_FIELDS = [
  'alert_config',
  'support_email',
  'slack_webhook_url',
  'teams_webhook_url',
  'advanced_signatures',
  'app_id',
  'appID',
];
export const NewEndpoint = named(
  'NewEndpoint',
  ignoring(
    IGNORED_FIELDS,
    object({ name: Name, url: Url, secret: Type.Optional(Secret), ...optional }),
  ),
);
export const ChangedEndpoint = named(
  'ChangedEndpoint',
  ignoring(
    IGNORED_FIELDS,
    object({ name: Type.Optional(Name), url: Type.Optional(Url), ...optional }),
  ),
);
export const NewSecret = named(
  'NewSecret',
  object({
    secret: Type.Optional(Secret),
    expiration: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 720,
        description: 'Hours for which the present secrets still sign; 0 ends them now.',
      }),
    ),
  }),
);

export const STATUSES = ['active', 'inactive', 'paused'] as const;
export const BREAKER_STATES = ['closed', 'open', 'half_open'] as const;
const CircuitBreaker = object({
  state: oneOf(BREAKER_STATES),
  since: nullable(Timestamp),
  until: nullable(Timestamp),
  requests: Type.Integer(),
  failures: Type.Integer(),
});
const SecretView = object({
  uid: Id,
  value: Type.String({ description: 'Masked, but in the answer that creates it.' }),
  created_at: Timestamp,
  expires_at: nullable(Timestamp),
});
export const Endpoint = named(
  'Endpoint',
  object({
    uid: Id,
    project_id: Id,
    name: Type.String(),
    url: Type.String(),
    owner_id: nullable(Type.String()),
    description: Type.String(),
    status: oneOf(STATUSES),
    status_reason: nullable(Type.String()),
    secrets: Type.Array(SecretView),
    authentication: nullable(Authentication),
    mtls_client_cert: nullable(ShownCertificate),
    http_timeout: Type.Number({ description: 'Seconds that a request may take.' }),
    concurrency: nullable(Type.Integer()),
    strategy: nullable(StrategySchema),
    rate_limit: nullable(Type.Integer()),
    rate_limit_duration: nullable(Type.Integer()),
    circuit_breaker: Type.Unsafe<BreakerView | null>({
      ...nullable(CircuitBreaker),
      description: 'Null while KV is away.',
    }),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
);
