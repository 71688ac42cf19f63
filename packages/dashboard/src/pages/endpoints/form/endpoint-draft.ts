import type { ChangedEndpoint, Endpoint, NewEndpoint } from '@gateway/client';
import { MASK } from '../../../components/schema-form/schema.js';
import { typedNumber as number } from '../../../format/number.js';
import { isPortal } from '../../../router/location.js';
import {
  authenticationOf,
  draftOfAuthentication,
  type AuthenticationDraft,
} from './authentication-draft.js';

/** The form of an endpoint; numbers are kept as typed. */
export interface EndpointDraft {
  readonly name: string;
  readonly url: string;
  readonly description: string;
  readonly owner: string;
  readonly authentication: AuthenticationDraft;
  readonly certificate: string;
  readonly certificateKey: string;
  /** True if a key is stored, which an empty field keeps. */
  readonly hasKey: boolean;
  readonly timeout: string;
  readonly concurrency: string;
  readonly limitKind: 'project' | 'none' | 'own';
  readonly limit: string;
  readonly limitSeconds: string;
  readonly retryKind: 'project' | 'linear' | 'exponential';
  readonly retryCount: string;
  readonly retrySeconds: string;
  readonly retryMaxSeconds: string;
}

const TIMEOUT_SECONDS = '10';

export const newEndpoint: EndpointDraft = {
  name: '',
  url: '',
  description: '',
  owner: '',
  authentication: draftOfAuthentication(null),
  certificate: '',
  certificateKey: '',
  hasKey: false,
  timeout: TIMEOUT_SECONDS,
  concurrency: '',
  limitKind: 'project',
  limit: '100',
  limitSeconds: '1',
  retryKind: 'project',
  retryCount: '10',
  retrySeconds: '10',
  retryMaxSeconds: '7200',
};

const text = (value: number | null | undefined, otherwise: string) =>
  value === null || value === undefined ? otherwise : String(value);

export function draftOf(endpoint: Endpoint): EndpointDraft {
  const { strategy, rate_limit: limit } = endpoint;
  return {
    ...newEndpoint,
    name: endpoint.name,
    url: endpoint.url,
    description: endpoint.description,
    owner: endpoint.owner_id ?? '',
    authentication: draftOfAuthentication(endpoint.authentication),
    certificate: endpoint.mtls_client_cert?.client_cert ?? '',
    hasKey: endpoint.mtls_client_cert !== null,
    timeout: String(endpoint.http_timeout),
    concurrency: text(endpoint.concurrency, ''),
    limitKind: limit === null ? 'project' : limit === 0 ? 'none' : 'own',
    limit: limit ? String(limit) : newEndpoint.limit,
    limitSeconds: text(endpoint.rate_limit_duration, newEndpoint.limitSeconds),
    retryKind: strategy?.type ?? 'project',
    retryCount: text(strategy?.retry_count, newEndpoint.retryCount),
    retrySeconds: text(strategy?.duration, newEndpoint.retrySeconds),
    retryMaxSeconds: strategy ? text(strategy.max_seconds, '') : newEndpoint.retryMaxSeconds,
  };
}

function certificateOf({
  certificate,
  certificateKey: key,
  hasKey,
}: EndpointDraft): NewEndpoint['mtls_client_cert'] {
  if (certificate.trim() === '') return null;
  // The API's mask of the key; sent back, it keeps the stored key.
  const given = key.trim() === '' ? (hasKey ? { client_key: MASK } : {}) : { client_key: key };
  return { client_cert: certificate, ...given };
}

/** Converts a draft for the API; in the portal without the fields that only the project can set. */
export function fieldsOf(draft: EndpointDraft): Omit<NewEndpoint, 'secret'> & ChangedEndpoint {
  return {
    name: draft.name.trim(),
    url: draft.url.trim(),
    description: draft.description.trim(),
    authentication: authenticationOf(draft.authentication),
    mtls_client_cert: certificateOf(draft),
    ...(isPortal.value ? {} : ofProject(draft)),
  };
}

function ofProject(draft: EndpointDraft): Omit<ChangedEndpoint, 'name' | 'url'> {
  const { limitKind, retryKind } = draft;
  return {
    owner_id: draft.owner.trim() || null,
    http_timeout: number(draft.timeout),
    concurrency: draft.concurrency.trim() === '' ? null : number(draft.concurrency),
    rate_limit: limitKind === 'project' ? null : limitKind === 'none' ? 0 : number(draft.limit),
    rate_limit_duration: limitKind === 'own' ? number(draft.limitSeconds) : null,
    strategy:
      retryKind === 'project'
        ? null
        : {
            type: retryKind,
            retry_count: number(draft.retryCount),
            duration: number(draft.retrySeconds),
            ...(retryKind === 'exponential' && draft.retryMaxSeconds.trim() !== ''
              ? { max_seconds: number(draft.retryMaxSeconds) }
              : {}),
          },
  };
}
