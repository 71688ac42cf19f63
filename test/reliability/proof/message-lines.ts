import type { Line } from './reconcile.js';
import { few } from './few.js';
import { grouped } from './grouped.js';
import type { Journal, Produced } from './journal.js';
import type { DeliveryRow, EventRow, Ledger } from './ledger.js';
import { textOf } from './messages.js';

type Place = 'delivered' | 'quarantined' | 'visible' | 'missing';

/** Compares the produced messages with the rows. */
export function messageLines(journal: Journal, ledger: Ledger): Line[] {
  const eventsOf = grouped(ledger.events, ({ n }) => n);
  const deliveriesOf = grouped(ledger.deliveries, ({ event_id: eventId }) => eventId);
  const answered = new Set(
    journal.arrivals.filter(({ status }) => isSuccess(status)).map(({ webhookId }) => webhookId),
  );
  const quarantined = grouped(ledger.quarantined, ({ raw }) => raw.toString('latin1'));
  const rawOf = (message: Produced) => Buffer.from(textOf(message)).toString('latin1');

  const place = (message: Produced): Place => {
    if (quarantined.has(rawOf(message))) return 'quarantined';
    const places = (eventsOf.get(message.n) ?? []).map((event) =>
      placeOf(event, deliveriesOf.get(event.id) ?? [], answered),
    );
    return (
      places.find((found) => found === 'missing') ??
      places.find((found) => found === 'visible') ??
      places[0] ??
      'missing'
    );
  };
  const confirmed = journal.produced.filter(({ acknowledgedByBroker }) => acknowledgedByBroker);
  return [
    ...(['kafka', 'sqs'] as const)
      .filter((via) => journal.produced.some((message) => message.via === via))
      .map((via) => accountLine(via, journal, place)),
    twiceLine(
      'events that are there twice, by coordinates',
      [...ledger.events, ...ledger.quarantined].map(
        ({ source_id: source, coordinates }) => `${coordinates} of source ${source}`,
      ),
      // Each topic of this name has a different message there.
      1 + journal.faults.filter(({ kind }) => kind === 'recreate topic').length,
    ),
    twiceLine(
      'events that are there twice, by message number',
      confirmed.flatMap(({ n }) => (eventsOf.get(n) ?? []).map(() => String(n))),
    ),
    quarantineLine(journal, quarantined, rawOf),
  ];
}

function accountLine(
  via: Produced['via'],
  { produced }: Journal,
  place: (message: Produced) => Place,
): Line {
  const mine = produced.filter((message) => message.via === via);
  const confirmed = mine.filter(({ acknowledgedByBroker }) => acknowledgedByBroker);
  const at = grouped(confirmed, place);
  const count = (where: Place) => at.get(where)?.length ?? 0;
  const missing = at.get('missing') ?? [];
  const unconfirmed = mine.length - confirmed.length;
  return {
    what: `messages of ${via === 'kafka' ? 'Kafka' : 'SQS'}: delivered + in quarantine + pending or failed`,
    expected: String(confirmed.length),
    found:
      `${count('delivered')} + ${count('quarantined')} + ${count('visible')}` +
      (unconfirmed > 0 ? `, and ${unconfirmed} that the broker did not confirm` : '') +
      (missing.length > 0 ? `; missing ${few(missing.map(({ n }) => n))}` : ''),
    ok: missing.length === 0,
  };
}

/**
 * Delivered means that the receiver answered with success and that Postgres has the success;
 * neither alone suffices.
 */
function placeOf(
  event: EventRow,
  deliveries: readonly DeliveryRow[],
  answered: ReadonlySet<string>,
): Place {
  if (event.status !== 'processed') return 'visible';
  if (deliveries.length === 0) return 'missing';
  if (deliveries.some(({ status }) => status !== 'success')) return 'visible';
  return deliveries.every(({ id }) => answered.has(id)) ? 'delivered' : 'missing';
}

/** @param max allowed occurrences of a name */
function twiceLine(what: string, names: readonly string[], max = 1): Line {
  const twice = [...grouped(names, (name) => name).values()]
    .filter(({ length }) => length > max)
    .map(([name]) => name as string);
  return { what, expected: '0', found: few(twice), ok: twice.length === 0 };
}

function quarantineLine(
  { produced }: Journal,
  quarantined: ReadonlyMap<string, readonly unknown[]>,
  rawOf: (message: Produced) => string,
): Line {
  const poisoned = produced.filter(({ poisoned: isPoisoned }) => isPoisoned);
  const times = (message: Produced) => quarantined.get(rawOf(message))?.length ?? 0;
  const confirmed = poisoned.filter(({ acknowledgedByBroker }) => acknowledgedByBroker);
  const wrong = confirmed.filter((message) => times(message) !== 1);
  const known = new Set(poisoned.map(rawOf));
  const strange = [...quarantined.keys()].filter((raw) => !known.has(raw));
  return {
    what: 'poisoned messages in quarantine: each once, byte for byte',
    expected: String(confirmed.length),
    found:
      String(confirmed.length - wrong.length) +
      (wrong.length > 0
        ? `; not once: ${few(wrong.map((message) => `${message.n} (${times(message)} times)`))}`
        : '') +
      (strange.length > 0
        ? `; not produced so: ${few(strange.map((raw) => JSON.stringify(raw.slice(0, 40))))}`
        : ''),
    ok: wrong.length === 0 && strange.length === 0,
  };
}

export function isSuccess(status: number | 'hung'): boolean {
  return status !== 'hung' && status >= 200 && status < 300;
}
