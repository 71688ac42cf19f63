import type { Sealer } from '@gateway/core/crypto';
import type { InvalidField } from '@gateway/core/errors';
import { checkClientCertificate } from '@gateway/core/http';
import { MASK } from '@gateway/core/logging';
import type { StoredClientCertificate } from '@gateway/store/config';
import {
  assertValid,
  described,
  object,
  string,
  Timestamp,
  Type,
  type Static,
} from '../../api/vocabulary.js';

/** Agents keep all certificates in memory. */
const CERT_MAX = 8_192;
const KEY_MAX = 4_096;
const FIELD = 'mtls_client_cert';

const client_cert = Type.String({
  minLength: 1,
  maxLength: CERT_MAX,
  description: 'PEM: the client certificate first, then its intermediate certificates.',
});
export const GivenCertificate = object({
  client_cert,
  client_key: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: KEY_MAX,
      'x-secret': true,
      description:
        'PEM of the private key, without a passphrase. If omitted or masked, the stored key is kept.',
    }),
  ),
  expires_at: Type.Optional(
    Type.Unsafe<string>({ ...Timestamp, readOnly: true, description: 'Ignored.' }),
  ),
});
export const ShownCertificate = object({
  client_cert,
  client_key: string('Masked.'),
  expires_at: described(Timestamp, 'When the certificate expires.'),
});

export type GivenCertificate = Static<typeof GivenCertificate>;

export function certificateView(
  stored: StoredClientCertificate | null,
): StoredClientCertificate | null {
  return stored && { ...stored, client_key: MASK };
}

export function keepsKey(given: GivenCertificate | null | undefined): boolean {
  return given === undefined || (given !== null && isKept(given.client_key));
}

/** Validates with the given or stored key. Throws `invalid_request`. */
export function sealCertificate(
  { client_cert: given, client_key: givenKey }: GivenCertificate,
  stored: StoredClientCertificate | null,
  endpointId: string,
  { seal, open, bind }: Sealer,
): StoredClientCertificate {
  const place = ['endpoints', endpointId, FIELD] as const;
  const refuse = (part: 'cert' | 'key', sentence: string) =>
    assertValid([{ field: `${FIELD}.client_${part}`, sentence }]);
  const isStored = isKept(givenKey);
  if (isStored && !stored) refuse('key', 'is missing, and no key is stored');
  const key = isStored ? open(stored!.client_key, place) : givenKey!;
  const checked = checkClientCertificate({ cert: given, key });
  if ('problem' in checked) refuse(checked.part, checked.problem);
  const { cert, expiresAt } = checked as Extract<typeof checked, { cert: string }>;
  return {
    client_cert: cert,
    client_key: isStored ? bind(stored!.client_key, place) : seal(key, place),
    expires_at: expiresAt.toISOString(),
  };
}

/**
 * The certificate needs TLS, and a stored one is not used for another origin: a user who can change
 * the URL may not be entitled to use its key.
 */
export function certificateProblems(
  {
    url,
    mtls_client_cert: given,
  }: {
    readonly url?: string | undefined;
    readonly mtls_client_cert?: GivenCertificate | null | undefined;
  },
  stored?: { readonly url: string; readonly mtls_client_cert: StoredClientCertificate | null },
): InvalidField[] {
  const before = stored?.mtls_client_cert ?? null;
  const has = given ?? (given === undefined ? before : null);
  const after = url ?? stored?.url;
  if (!has || after === undefined || !URL.canParse(after)) return [];
  if (!after.startsWith('https:'))
    return [
      {
        field: FIELD,
        sentence: 'requires a url that begins with https://, because client certificates need TLS',
      },
    ];
  if (!before || !keepsKey(given) || new URL(stored!.url).origin === new URL(after).origin)
    return [];
  const { origin } = new URL(stored!.url);
  const sentence = `is not used for another origin than ${origin}: url changes; give the key again, or null as ${FIELD} to remove it`;
  return [{ field: `${FIELD}.client_key`, sentence }];
}

function isKept(key: string | undefined): boolean {
  return key === undefined || key === MASK;
}
