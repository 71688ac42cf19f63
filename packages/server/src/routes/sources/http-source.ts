import { Type, type Static } from '@sinclair/typebox';
import { keepSecrets, maskConnection, openConnection, sealConnection } from '@gateway/core/crypto';
import type { HttpSettings, SourceRow, VerifierRecord } from '@gateway/store/config';
import type { ProjectCall } from '../../api/route.js';
import { assertValid, nullable, object, oneOf, optional, Word } from '../../http/schema.js';
import { LOCATION_PATTERN } from '../../ingest/location.js';
import { providerOf } from '../../ingest/providers.js';
import {
  HeaderName,
  Verifier,
  verifierProblems,
  verifierSchema,
  type VerifierFields,
} from '../../ingest/verifier.js';

/** For an incoming project's source that defines no type. */
const DEFAULT_EVENT_TYPE = 'webhook';

const Location = Type.String({
  maxLength: 300,
  pattern: LOCATION_PATTERN,
  'x-sentence': 'must be a place in a request, such as header.X-Topic, body.type or query.type',
});
const all = {
  verifier: Verifier,
  event_type: nullable(Word, 'Event type of requests without one at `event_type_location`.'),
  event_type_location: nullable(
    Location,
    'Location of the event type in a request, such as `header.X-Topic` or `body.type`.',
  ),
  idempotency_keys: Type.Array(Location, {
    maxItems: 10,
    description: 'Locations in a request whose values make up its idempotency key.',
  }),
  forward_headers: Type.Array(HeaderName, {
    maxItems: 50,
    description:
      'Headers that travel with the event, besides those of its trace: none by default, or those of the provider.',
  }),
  custom_response: nullable(
    object({
      body: Type.String({ maxLength: 10_000 }),
      content_type: oneOf(['application/json', 'text/plain']),
    }),
    'The response to accepted requests.',
  ),
};

export const httpFields = optional(all);
export type HttpFields = Static<ReturnType<typeof object<typeof httpFields>>>;

/** Null for other sources. */
export const httpView = {
  mask_id: nullable(Type.String()),
  url: nullable(
    Type.String({
      description:
        'URL that providers post to; a path if the server does not know its public host name.',
    }),
  ),
  ...all,
  verifier: nullable(verifierSchema),
  idempotency_keys: nullable(all.idempotency_keys),
  forward_headers: nullable(
    all.forward_headers,
    'Headers that travel with the event, besides those of its trace. Null for sources of brokers that were made before this field existed: all of theirs travel.',
  ),
};

export const HTTP_NAMES = Object.keys(httpFields) as readonly (keyof HttpFields)[];
/** Sources of brokers do not have these. */
export const HTTP_ONLY = HTTP_NAMES.filter((name) => name !== 'forward_headers');

/**
 * Seals secrets. Omitted fields keep their stored values or, for a new source, default to the
 * provider's.
 */
export function readHttp(
  given: HttpFields,
  stored: HttpSettings | undefined,
  { sealer, project, id }: Pick<ProjectCall, 'sealer' | 'project' | 'id'>,
): HttpSettings {
  const before = stored && openConnection(stored.verifier, Verifier, id, sealer.open);
  const asked = given.verifier ?? (before as VerifierFields | undefined) ?? { type: 'noop' };
  const { connection, problems } = keepSecrets(
    asked,
    Verifier,
    before?.['type'] === asked.type ? before : undefined,
    'verifier',
  );
  assertValid(problems);
  assertValid(verifierProblems(connection));
  const kept = stored && before && { sealed: stored.verifier, plain: before };
  const verifier = sealConnection(connection, Verifier, id, sealer, kept) as VerifierRecord;
  const provider = providerOf(asked.type);
  const defaults: Omit<HttpSettings, 'verifier'> = stored ?? {
    event_type:
      provider?.event_type ??
      (!provider && project.type === 'incoming' ? DEFAULT_EVENT_TYPE : null),
    event_type_location: provider?.event_type_location ?? null,
    idempotency_keys: provider?.idempotency_keys ?? [],
    forward_headers: provider?.forward_headers ?? [],
    custom_response: null,
  };
  const { verifier: _, ...plain } = given;
  const settings = { ...defaults, ...plain, verifier };
  return given.event_type === undefined && typeof given.event_type_location === 'string' && !stored
    ? { ...settings, event_type: null }
    : settings;
}

export function httpViewOf(
  { http, mask_id }: Pick<SourceRow, 'http' | 'mask_id'>,
  base: string,
): unknown {
  if (!http || mask_id === null)
    return Object.fromEntries(Object.keys(httpView).map((name) => [name, null]));
  return {
    mask_id,
    url: `${base}/ingest/${mask_id}`,
    ...http,
    verifier: maskConnection(http.verifier, Verifier),
  };
}
