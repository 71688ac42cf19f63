import type { Line, Offsets } from './reconcile.js';
import { few } from './few.js';
import type { Ledger } from './ledger.js';

/** Checks invariants of the rows, and of the offsets committed to the brokers. */
export function rowLines(brokers: Offsets, ledger: Ledger): Line[] {
  return [
    offsetsLine(brokers, ledger),
    {
      what: 'messages left in the queue: waiting + with a reader',
      expected: '0 + any',
      found: `${brokers.sqs.ready} + ${brokers.sqs.inFlight}`,
      ok: brokers.sqs.ready === 0,
    },
    noneLine('deliveries held beyond a lease', ledger.pastLease),
    noneLine('events waiting to be routed, forgotten', ledger.unrouted),
    noneLine('deliveries due, forgotten', ledger.overdue),
    noneLine('deliveries that wait for an endpoint that cannot have them', ledger.leftBehind),
    {
      what: 'counts that differ from the rows',
      expected: '0',
      found: few(ledger.miscounted),
      ok: ledger.miscounted.length === 0,
    },
  ];
}

/** All messages before a committed offset must be in Postgres, as events or in quarantine. */
function offsetsLine({ kafka }: Offsets, { events, quarantined }: Ledger): Line {
  const there = new Set([...events, ...quarantined].map(({ coordinates }) => coordinates));
  let committedMessages = 0;
  const ahead: string[] = [];
  for (const { topic, partition, committed } of kafka) {
    for (let offset = 0; offset < committed; offset++) {
      committedMessages++;
      if (!there.has(`${topic}/${partition}/${offset}`)) ahead.push(`${partition}/${offset}`);
    }
  }
  return {
    what: 'messages before the committed offsets that are in Postgres',
    expected: String(committedMessages),
    found:
      String(committedMessages - ahead.length) +
      (ahead.length > 0 ? `; not in Postgres ${few(ahead)}` : ''),
    ok: ahead.length === 0,
  };
}

/** A line that expects an empty list. */
export function noneLine(what: string, ids: readonly string[]): Line {
  return { what, expected: '0', found: few(ids), ok: ids.length === 0 };
}
