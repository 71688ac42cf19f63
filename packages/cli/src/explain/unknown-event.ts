import { GatewayError } from '@gateway/core/errors';
import { timeOfId } from '@gateway/core/events';
import type { OtherRecord } from '@gateway/store/deliveries';
import { escapeLine } from '../output/escape-terminal.js';

/** Beyond this the time that an id begins with is none. */
const YEAR_2200 = Date.UTC(2200, 0, 1);

/** The error for an id that no event has: what it is instead, and what to run. */
export function unknownEvent(id: string, meanings: readonly OtherRecord[]): GatewayError {
  const [meaning] = meanings;
  if (!meaning) return new GatewayError('event_unknown', { sentence: nowhere(id), fix: NOWHERE_FIX });
  const { thing, detail, project_id } = meaning;
  switch (thing) {
    case 'event delivery':
      return new GatewayError('event_unknown', {
        sentence: `${id} is an event delivery of the event ${detail}`,
        fix: `run \`gateway utils explain ${detail}\`, which tells of all its deliveries`,
      });
    case 'quarantined message':
      return new GatewayError('event_unknown', {
        sentence:
          detail === 'quarantined'
            ? `${id} is a message that could not be accepted, so it is no event: it is in quarantine`
            : `${id} is a message that was in quarantine and is ${detail}; there is no event of it`,
        fix: `run \`gateway utils quarantine show ${id}\`, which tells why`,
      });
    default:
      return new GatewayError('event_unknown', {
        sentence: `${id} is the ${thing} ${escapeLine(detail, 200)}, not an event`,
        fix: `give the id of an event; GET /api/v1/projects/${project_id}/events lists them`,
      });
  }
}

function nowhere(id: string): string {
  const ms = timeOfId(id);
  const time = ms < YEAR_2200 ? `; by its first digits it would be of ${new Date(ms).toISOString()}` : '';
  return `no event, event delivery or quarantined message has the id ${id}${time}`;
}

const NOWHERE_FIX =
  'check the id and the database. A message whose idempotency key another event holds makes no event, one that its function drops is not kept, and events are deleted after their retention';
