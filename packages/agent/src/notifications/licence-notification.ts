import type { Config } from '@gateway/core/config';
import { isGatewayError } from '@gateway/core/errors';
import { readLicence } from '@gateway/core/plugins';
import type { NewNotification } from '@gateway/store/config';

/** How many days before a licence expires notifications are sent. */
const REMINDER_DAYS = [1, 7, 30];
const DAY_MS = 86_400_000;

/**
 * Returns the licence notification that is due, if any. None is due for the community licence, an
 * invalid licence, or a licence without expiry.
 */
export function licenceNotification({
  license_key: token,
  license_public_key: publicKey,
}: Config): NewNotification | undefined {
  const now = new Date();
  const { organisation, expiresAt, problem } = readLicence({ token, publicKey, now });
  const notification = (
    kind: NewNotification['kind'],
    licensee: string,
    expires_at: string,
    reminder = '',
  ): NewNotification => ({
    kind,
    projectId: null,
    subject: `${licensee} ${expires_at}${reminder}`,
    facts: { licensee, expires_at },
  });
  if (problem && isGatewayError(problem, 'licence_expired'))
    return notification(
      'licence_expired',
      String(problem.details.organisation),
      String(problem.details.expiredAt),
    );
  if (!organisation || !expiresAt) return undefined;
  const daysLeft = (expiresAt.getTime() - now.getTime()) / DAY_MS;
  const days = REMINDER_DAYS.find((it) => daysLeft <= it);
  return days === undefined
    ? undefined
    : notification('licence_expiring', organisation, expiresAt.toISOString(), ` ${days}`);
}
