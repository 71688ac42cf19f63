import type { InvalidField } from '@gateway/core/errors';
import { isHeaderName, isHeaderValue, isReservedHeader } from '@gateway/core/events';
import type { EndpointAuthentication, EndpointFields, EndpointRow } from '@gateway/store/config';
import { assertValid, type ProjectCall, type Static } from '../../api/vocabulary.js';
import { sealCertificate } from './client-certificate.js';
import type { ChangedEndpoint } from './endpoint-schema.js';
import { isMasked, sealAuthentication, secretProblem } from './endpoint-secrets.js';
import { sealHeaders } from './static-headers.js';

type Given = Static<typeof ChangedEndpoint>;

/** Seals secrets. Throws `invalid_request` for the mask of a secret that is not stored. */
export function columnsOf(
  { http_timeout, authentication, mtls_client_cert: certificate, headers, ...plain }: Given,
  stored: EndpointRow | undefined,
  { sealer, id }: Pick<ProjectCall, 'sealer' | 'id'>,
): Partial<EndpointFields> {
  const sealed =
    authentication &&
    sealAuthentication(
      authentication as EndpointAuthentication,
      stored?.authentication ?? null,
      id,
      sealer,
    );
  if (authentication && !sealed) {
    const sentence = 'holds the mask of a secret, but none is stored; give the secret itself';
    assertValid([{ field: `authentication.${authentication.type}`, sentence }]);
  }
  return {
    ...plain,
    ...(http_timeout === undefined ? {} : { timeout_ms: Math.round(http_timeout * 1000) }),
    ...(authentication === undefined ? {} : { authentication: sealed ?? null }),
    ...(headers !== undefined && {
      headers: sealHeaders(headers, stored?.headers ?? null, id, sealer),
    }),
    ...(certificate === undefined
      ? {}
      : {
          mtls_client_cert:
            certificate &&
            sealCertificate(certificate, stored?.mtls_client_cert ?? null, id, sealer),
        }),
  };
}

/** Formats whose services give URLs that are secrets. */
const SECRET_URLS = ['slack', 'teams'];

/** Keeps a URL that is a secret with the authentication, where it is sealed and masked. */
export function withSecretUrl<Body extends Given>(body: Body, stored?: EndpointRow): Body {
  const { url = '', format = stored?.format ?? null } = body;
  if (format === null || !SECRET_URLS.includes(format) || urlProblems(url).length > 0) return body;
  const { origin, pathname, search } = new URL(url);
  if (pathname === '/' && search === '') return body;
  return { ...body, url: origin, authentication: { type: 'secret_url', secret_url: { url } } };
}

export function fieldProblems({ url, authentication }: Given): InvalidField[] {
  return [
    ...(url === undefined ? [] : urlProblems(url)),
    ...(authentication ? authenticationProblems(authentication) : []),
  ];
}

/**
 * Stored secrets are not sent to another origin: a user who can change the URL may not be entitled
 * to know them.
 */
export function movedProblems(
  { url, authentication: given }: Given,
  stored: EndpointRow,
): InvalidField[] {
  const { authentication: before } = stored;
  const isKept = given === undefined || (given && isMasked(given as EndpointAuthentication));
  if (!before || !isKept) return [];
  const moved = (field: string, from: string, to: string | undefined) => {
    const { origin } = new URL(from);
    if (to === undefined || new URL(to).origin === origin) return [];
    const sentence = `is not sent to another origin than ${origin}: ${field} changes; give the secret again, or null as authentication to remove it`;
    return [{ field: `authentication.${before.type}`, sentence }];
  };
  const tokens =
    before.type === 'oauth2'
      ? moved('authentication.oauth2.url', before.oauth2.url, given?.oauth2?.url)
      : [];
  return [...moved('url', stored.url, url), ...tokens];
}

function urlProblems(text: string, field = 'url'): InvalidField[] {
  if (!URL.canParse(text))
    return [{ field, sentence: 'must be a URL like https://example.com/webhooks' }];
  const { protocol, username, password } = new URL(text);
  if (protocol !== 'https:' && protocol !== 'http:')
    return [{ field, sentence: 'must begin with https:// or http://' }];
  return username || password
    ? [
        {
          field,
          sentence:
            'must not hold credentials; use the field authentication, where they are kept sealed',
        },
      ]
    : [];
}

function authenticationProblems(given: NonNullable<Given['authentication']>): InvalidField[] {
  const { type, ...objects } = given;
  const problems: InvalidField[] = [];
  const check = (ok: boolean, field: string, sentence: string) => {
    if (!ok) problems.push({ field: `authentication.${field}`, sentence });
  };
  check(objects[type] !== undefined, type, 'is missing');
  for (const name of Object.keys(objects))
    check(name === type, name, `does not belong to the type ${type}`);
  const cannotCarry = 'holds characters that HTTP cannot carry';
  if (objects.api_key) {
    const { header_name: name, header_value: value } = objects.api_key;
    check(isHeaderName(name), 'api_key.header_name', 'must be the name of a header');
    check(
      !isReservedHeader(name),
      'api_key.header_name',
      'is a header that the gateway or the connection sets',
    );
    check(isHeaderValue(value), 'api_key.header_value', cannotCarry);
  }
  if (objects.oauth2)
    problems.push(...urlProblems(objects.oauth2.url, 'authentication.oauth2.url'));
  if (objects.secret_url && !isMasked(given as EndpointAuthentication))
    problems.push(...urlProblems(objects.secret_url.url, 'authentication.secret_url.url'));
  if (objects.bearer) check(isHeaderValue(objects.bearer.token), 'bearer.token', cannotCarry);
  return problems;
}

export function secretProblems(secret: string): InvalidField[] {
  const sentence = secretProblem(secret);
  return sentence === undefined ? [] : [{ field: 'secret', sentence }];
}
