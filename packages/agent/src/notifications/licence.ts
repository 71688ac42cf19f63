import type { Config } from '@gateway/core/config';
import { isGatewayError } from '@gateway/core/errors';
import { readLicence } from '@gateway/core/plugins';
import type { NewNotification } from '@gateway/store/config';

/** Days before the end at which people are told. */
const DAYS = [1, 7, 30];
const DAY_MS = 86_400_000;

/**
 * What is to be told about the licence now: that it has expired, or that it is about to. A licence without an end, a wrong one and the community's have
 * nothing to tell.
 */
export function licenceNotification(
  { license_key: token, license_public_key: publicKey }: Pick<Config, 'license_key' | 'license_public_key'>,
  now = new Date(),
): NewNotification | undefined {
  const { organisation, expiresAt, problem } = readLicence({ token, publicKey, now });
  if (problem && isGatewayError(problem, 'licence_expired')) {
    const { organisation: licensee, expiredAt } = problem.details;
    return { kind: 'licence_expired', projectId: null, subject: `${licensee} ${expiredAt}`, facts: { licensee, expires_at: expiredAt } };
  }
  if (!organisation || !expiresAt) return undefined;
  const left = (expiresAt.getTime() - now.getTime()) / DAY_MS;
  const days = DAYS.find((it) => left <= it);
  if (days === undefined) return undefined;
  const expires = expiresAt.toISOString();
  return {
    kind: 'licence_expiring',
    projectId: null,
    subject: `${organisation} ${expires} ${days}`,
    facts: { licensee: organisation, expires_at: expires },
  };
}
