import type { Log } from '@gateway/core/logging';
import { backoffMs } from '@gateway/core/process';
import type { StageOptions } from '@gateway/core/queue';
import { rejectsContent } from '@gateway/store/postgres';
import type { ReadyMessage } from '../message/ready-message.js';
import { databaseRefused } from '../validate/reject-codes.js';
import { quarantineFields } from './debug-log.js';

/**
 * Errors of Postgres are retried. A message that Postgres rejects is quarantined; if refused even
 * then, it is settled as `later`.
 */
export function retrying<Item extends { readonly message: ReadyMessage }>(
  log: Log,
): Required<Pick<StageOptions<Item>, 'backoffMs' | 'refuses' | 'replace'>> {
  return {
    backoffMs: (failures) => backoffMs(failures, { baseMs: 50, capMs: 2_000 }),
    refuses: rejectsContent,
    replace: (item, error) => {
      const { message } = item;
      if (message.quarantined === null) {
        message.reject(databaseRefused(error));
        return item;
      }
      const fields = quarantineFields(message.quarantined);
      log.error(
        { error, ...fields },
        'Could neither accept nor quarantine a message; it stays unacknowledged.',
      );
      message.settle('later');
      return undefined;
    },
  };
}
