import { clip, plainOf } from '@gateway/core/json';
import { isEmail } from '@gateway/store/people';
import { failed } from './failure.js';

export interface OidcPerson {
  /**
   * With `subject`, it never changes:
   * https://openid.net/specs/openid-connect-core-1_0.html#ClaimStability
   */
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | undefined;
  /** Undefined if the provider does not say. */
  readonly isEmailVerified: boolean | undefined;
  readonly first_name: string;
  readonly last_name: string;
}

type Claims = Readonly<Record<string, unknown>> & { readonly iss: string; readonly sub: string };

const NAME_MAX = 100;
const EMAIL_MAX = 320;

/** Requires verified claims. Throws `oidc_failed` for an invalid subject. */
export function personOf(claims: Claims): OidcPerson {
  const { iss: issuer, sub: subject, email, email_verified: verified } = claims;
  if (!/^[\x20-\x7e]{1,255}$/.test(subject))
    throw failed('the provider returned an invalid subject');
  const [first = '', ...rest] = text(claims['name']).split(' ');
  return {
    issuer,
    subject,
    email:
      typeof email === 'string' && isEmail(email) && text(email, EMAIL_MAX) === email
        ? email
        : undefined,
    // Some providers send it as a string.
    isEmailVerified: verified === undefined ? undefined : verified === true || verified === 'true',
    first_name: text(claims['given_name']) || first,
    last_name: text(claims['family_name']) || rest.join(' '),
  };
}

/**
 * Removes characters that Postgres cannot store or a terminal would interpret. Empty if the claim
 * is not a string.
 */
function text(claim: unknown, max = NAME_MAX): string {
  return typeof claim === 'string' ? clip(plainOf(claim), max, '').toWellFormed() : '';
}
