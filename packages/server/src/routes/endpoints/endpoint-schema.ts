import { ENDPOINT_FORMATS, SIGNATURE_SCHEMES } from '@gateway/store/config';
import { INACTIVE_REASONS, type InactiveReason } from '@gateway/store/deliveries';
import {
  answered,
  Id,
  ignoring,
  int,
  integer,
  Name,
  named,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  StrategySchema,
  string,
  Timestamp,
  Type,
  Word,
  type TSchema,
} from '../../api/vocabulary.js';
import { Batch } from './batch.js';
import { GivenCertificate, ShownCertificate } from './client-certificate.js';
import { GivenHeaders, ShownHeaders } from './static-headers.js';

const SECRET = { 'x-secret': true };
const Authentication = object({
  type: oneOf(['api_key', 'basic', 'bearer', 'oauth2', 'secret_url']),
  api_key: Type.Optional(
    object({
      header_name: Type.String({ minLength: 1, maxLength: 200 }),
      header_value: Type.String({ minLength: 1, maxLength: 4096, ...SECRET }),
    }),
  ),
  basic: Type.Optional(
    object({
      username: Type.String({
        minLength: 0,
        maxLength: 1024,
        pattern: '^[^:]*$',
        'x-sentence': 'must not contain a colon',
      }),
      password: Type.String({ minLength: 0, maxLength: 4096, ...SECRET }),
    }),
  ),
  bearer: Type.Optional(
    object({ token: Type.String({ minLength: 1, maxLength: 4096, ...SECRET }) }),
  ),
  oauth2: Type.Optional(
    object({
      url: Type.String({
        minLength: 1,
        maxLength: 2048,
        description: 'URL that issues tokens for client credentials (RFC 6749, 4.4).',
        'x-label': 'Token URL',
      }),
      client_id: Type.String({ minLength: 1, maxLength: 1024 }),
      client_secret: Type.String({ minLength: 1, maxLength: 4096, ...SECRET }),
      client_auth: Type.Optional(
        oneOf(['basic', 'post'], {
          description:
            'Where the client id and secret are sent: `basic`, the default, in the `Authorization` header; `post` in the form.',
          'x-label': 'Client authentication',
        }),
      ),
      scope: Type.Optional(
        Type.String({ maxLength: 2048, description: 'Scope, if the token server requires one.' }),
      ),
      audience: Type.Optional(
        Type.String({
          maxLength: 2048,
          description: 'Audience, if the token server requires one.',
        }),
      ),
    }),
  ),
  secret_url: Type.Optional(
    object({
      url: Type.String({
        minLength: 1,
        maxLength: 4096,
        description: 'URL that requests go to, if it is a secret. `url` shows its origin.',
        'x-label': 'Whole URL',
        ...SECRET,
      }),
    }),
  ),
});

/** Portal links cannot set it, because only the project may limit an endpoint's resources. */
const OF_PROJECT = { 'x-set-by': 'project' };
const AS_PROJECT = { ...OF_PROJECT, 'x-unset': 'project default' };

/** The key by which an endpoint or a subscription orders deliveries. */
export const Ordering = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: "^(message\\.key|data\\.[^\\s].*|headers\\.[A-Za-z0-9!#$%&'*+.^_`|~-]+)$",
  'x-sentence': 'must be message.key, data. and a path, or headers. and a name',
  examples: ['message.key', 'data.order.id'],
});

const needed = {
  name: Name,
  url: Type.String({
    minLength: 1,
    maxLength: 2048,
    format: 'uri',
    examples: ['https://example.com/webhooks'],
    description: 'An `https` or `http` URL without credentials.',
    'x-label': 'URL',
  }),
};
/**
 * In form order. `x-label` is the label in a form, `description` the hint, and `x-unset` the text
 * for null.
 */
const others = {
  authentication: nullable({
    ...Authentication,
    description: 'Sent in addition to the signature, which every request carries.',
    'x-unset': 'signature only',
  }),
  description: Type.String({ minLength: 0, maxLength: 2000 }),
  owner_id: nullable({
    ...Word,
    description: 'Events for an owner go to all endpoints with this id.',
    'x-label': 'Owner',
    ...OF_PROJECT,
  }),
  mtls_client_cert: nullable({
    ...GivenCertificate,
    description:
      'For endpoints that require mutual TLS. PEM: the client certificate first, then its intermediate certificates.',
    'x-label': 'Client certificate',
  }),
  format: nullable({
    ...oneOf(ENDPOINT_FORMATS),
    description:
      '`cloudevents` sends CloudEvents 1.0 in structured mode, `cloudevents_binary` in binary mode. The others are services whose messages are made of events, at most one per second unless `rate_limit` is set; subscribe the endpoint to `gateway.*` for operational events.',
    'x-unset': 'data of the event',
    ...OF_PROJECT,
  }),
  signatures: nullable({
    ...Type.Array(oneOf(SIGNATURE_SCHEMES), {
      minItems: 1,
      maxItems: SIGNATURE_SCHEMES.length,
    }),
    description:
      '`hmac` and `ed25519` as in Standard Webhooks, by the secret or by a key whose public part is at `…/endpoints/{id}/jwks.json`; both also as HTTP Message Signatures (`rfc9421-…`).',
    'x-unset': 'hmac',
  }),
  signature_prefix: nullable({
    ...Type.String({
      minLength: 1,
      maxLength: 40,
      pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
      'x-sentence': 'must have only lower-case letters, digits and single hyphens between them',
    }),
    description:
      'Names the headers of the signature: `svix` makes `svix-id`, `svix-timestamp` and `svix-signature`.',
    'x-unset': 'webhook',
  }),
  headers: nullable({
    ...GivenHeaders,
    description: 'Sent with each request. Values are stored encrypted and never shown.',
    'x-unset': 'none',
  }),
  http_timeout: Type.Number({
    minimum: 0.1,
    maximum: 120,
    description: 'From connecting to the last byte of the response. Default: 10.',
    'x-label': 'Timeout in seconds',
    'x-default': 10,
    ...OF_PROJECT,
  }),
  strategy: nullable({
    ...StrategySchema,
    description: 'Number and timing of the retries of failed requests.',
    'x-label': 'Retries',
    ...AS_PROJECT,
  }),
  rate_limit: nullable({
    ...integer(
      0,
      1_000_000,
      'Maximum requests per `rate_limit_duration`, over all agents. 0: no limit; null: project default.',
    ),
    ...AS_PROJECT,
  }),
  rate_limit_duration: nullable({
    ...integer(1, 86_400, 'Period of `rate_limit` in seconds. Default: 1.'),
    ...OF_PROJECT,
  }),
  ordering: nullable({
    ...Ordering,
    description:
      'Deliveries with the same key are sent one after the other: `message.key`, or a path in the event such as `data.order.id` or `headers.x-order`. Events without a value are not ordered.',
    'x-label': 'Order by',
    'x-unset': 'not ordered',
    ...OF_PROJECT,
  }),
  ordering_failure: nullable({
    ...oneOf(['park', 'skip']),
    description:
      'Effect of a delivery that has failed for good on others with its key. `park`, the default: they wait until someone decides. `skip`: the next one is sent.',
    'x-label': 'After a failure',
    'x-unset': 'park the key',
    ...OF_PROJECT,
  }),
  ordering_park_after_seconds: nullable({
    ...integer(
      1,
      2_592_000,
      'Seconds after which the key of a delivery that is retried is parked, even if attempts are left. Checked every 30 s.',
    ),
    'x-label': 'Park after seconds',
    'x-unset': 'after the last attempt',
    ...OF_PROJECT,
  }),
  batch: nullable({
    ...Batch,
    description:
      'Sends several events in one request, as `application/vnd.gateway.batch+json`. Not with `ordering` or `format`.',
    'x-label': 'Batches',
    'x-unset': 'one event per request',
    ...OF_PROJECT,
  }),
  concurrency: nullable({
    ...integer(1, 10_000, 'Maximum simultaneous requests per agent.'),
    'x-unset': 'instance default',
    ...OF_PROJECT,
  }),
};
const Secret = Type.String({
  maxLength: 200,
  description:
    'Signs requests. Leave empty to generate one. Otherwise `whsec_` and base64 of 24 to 64 bytes, or any text of at least 12 characters, whose UTF-8 bytes are the key.',
});

/** Alerts are replaced by the instance's notifications; the other behaviour is fixed. */
const IGNORED_FIELDS = [
  'alert_config',
  'support_email',
  'slack_webhook_url',
  'teams_webhook_url',
  'advanced_signatures',
  'app_id',
  'appID',
];
/** Exported with the client. */
function ofForm<Schema extends TSchema>(schema: Schema): Schema {
  return { ...schema, 'x-form': true };
}

export const NewEndpoint = named(
  'CreateEndpoint',
  ofForm(
    ignoring(
      IGNORED_FIELDS,
      object({ ...needed, secret: Type.Optional(Secret), ...optional(others) }),
    ),
  ),
);
export const ChangedEndpoint = named(
  'ChangedEndpoint',
  ignoring(IGNORED_FIELDS, object(optional({ ...needed, ...others }))),
);
export const NewSecret = namedObject('CreateSecret', {
  secret: Type.Optional(Secret),
  expiration: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 720,
      description: 'Hours for which the old secrets stay valid. 0 revokes them now.',
    }),
  ),
});

export const STATUSES = ['active', 'inactive', 'paused'] as const;
export const BREAKER_STATES = ['closed', 'open', 'half_open'] as const;
const CircuitBreaker = object({
  state: oneOf(BREAKER_STATES),
  since: nullable(Timestamp),
  until: nullable(Timestamp),
  requests: int(),
  failures: int(),
  back_off_until: nullable(
    Timestamp,
    'Until when no agent sends, because the endpoint responded with 429, 503 or `Retry-After`.',
  ),
});
const SecretView = object({
  uid: Id,
  value: string('Masked, except in the response that creates the secret.'),
  public_key: nullable(
    string(
      'Public part of the key that signs while the secret does, as `whpk_` and base64; null without one.',
    ),
  ),
  created_at: Timestamp,
  expires_at: nullable(Timestamp),
});
export const Endpoint = namedObject('Endpoint', {
  uid: Id,
  project_id: Id,
  ...answered({ ...needed, ...others }),
  mtls_client_cert: nullable(ShownCertificate),
  headers: nullable(ShownHeaders),
  status: oneOf(
    STATUSES,
    'Deliveries to a `paused` endpoint are held. Deliveries to an `inactive` endpoint, which responded with 410 Gone, are discarded.',
  ),
  status_reason: nullable(string('Why the endpoint is not active; null over a portal link.')),
  inactive_reason: nullable(
    oneOf(
      Object.keys(INACTIVE_REASONS) as InactiveReason[],
      'Why an `inactive` endpoint was deactivated. `gone`: it responded with 410 Gone. `failing`: all attempts failed for the days that the project allows.',
    ),
  ),
  secrets: Type.Array(SecretView, {
    description: 'Secrets that currently sign requests, newest first.',
  }),
  circuit_breaker: nullable(
    CircuitBreaker,
    'State of the circuit breaker; null while KV is unavailable.',
  ),
  current_concurrency: nullable(
    int(),
    'Simultaneous requests of an agent, if its latency or its errors have lowered them below `concurrency`; as an agent last reported. Only in the response about one endpoint.',
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
});
