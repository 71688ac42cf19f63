// A statement does not see rows of a transaction that committed while it waited for their locks, so
// the accept statement itself cannot say what is there instead of an event that it did not create.
// A second one asks, only for such events.
import type { Querier } from '../postgres/connection.js';
import { batchOf } from '../postgres/columns.js';
import { isSame, REF_COLUMNS } from './event-ref.js';
import type { NewEvent } from './events.js';

type JudgedEvent = Pick<
  NewEvent,
  'projectId' | 'id' | 'occurredAtMs' | 'digest' | 'eventType' | 'idempotencyKey' | 'data'
>;

/** The reason why an event was not created. */
export type EventVerdict =
  /** The event with this id is the same one, or has its idempotency key. */
  | { readonly is: 'duplicate'; readonly id: string }
  /** Its id belongs to an event of another message. */
  | { readonly is: 'collision' }
  /** An earlier version stored an event with its id, other content and no digest to compare. */
  | { readonly is: 'unclear' }
  /** Nothing is there any longer: its idempotency key has expired since. */
  | { readonly is: 'free' };

interface Found {
  readonly n: number;
  readonly isStored: boolean;
  readonly digest: string | null;
  /** Null unless the stored event has no digest. */
  readonly eventType: string | null;
  readonly data: string | null;
  readonly isDated: boolean;
  readonly holder: string | null;
}

const KEYED = [...REF_COLUMNS, ['key', 'idempotencyKey']] as const;
const KEYS = batchOf<JudgedEvent>(KEYED);
const JUDGED = batchOf<JudgedEvent & { readonly n: number }>([
  ...KEYED,
  ['digest', 'digest'],
  ['n', 'n', 'int'],
]);

/** For events that exist already, or could not be created. Reads by primary key, without a lock. */
export async function readVerdicts<Event extends JudgedEvent>(
  client: Querier,
  events: readonly Event[],
): Promise<ReadonlyMap<Event, EventVerdict>> {
  const { rows } = await client.query<Found>({
    name: 'read-verdicts',
    text: `select u.n, s.id is not null as "isStored", encode(s.digest, 'hex') as digest, a.id is not null as "isDated", k.event_id as holder,
                  case when s.digest is null and u.digest is not null then s.event_type end as "eventType",
                  case when s.digest is null and u.digest is not null then s.data end as data
           from (${JUDGED.select()}) u
           left join events s on ${isSame('s', 'u')}
           left join message_arrivals a on a.project_id = u.project_id and a.id = u.id
           left join idempotency_keys k on k.project_id = u.project_id and k.key = u.key and k.expires_at > now()`,
    values: JUDGED.texts(events.map((event, n) => ({ ...event, n }))),
  });
  return new Map(rows.map((found) => [events[found.n]!, verdictOn(events[found.n]!, found)]));
}

function verdictOn(event: JudgedEvent, found: Found): EventVerdict {
  const same = { is: 'duplicate', id: event.id } as const;
  if (!found.isStored) {
    if (found.holder !== null) return { is: 'duplicate', id: found.holder };
    return found.isDated ? same : { is: 'free' };
  }
  if (event.digest === null || event.digest === found.digest) return same;
  if (found.digest !== null) return { is: 'collision' };
  return found.eventType === event.eventType && found.data === event.data
    ? same
    : { is: 'unclear' };
}

/**
 * Frees the idempotency keys that a commit claimed for events whose ids other events have, so that
 * they can be created with other ids. Locks only these keys.
 */
export async function releaseKeys(client: Querier, events: readonly JudgedEvent[]): Promise<void> {
  await client.query({
    name: 'release-keys',
    text: `delete from idempotency_keys k
           using (${KEYS.select()}) u
           where k.project_id = u.project_id and k.key = u.key and k.event_id = u.id
             and not exists (select from events s where ${isSame('s', 'u')} and s.idempotency_key = u.key)`,
    values: KEYS.texts(events),
  });
}
