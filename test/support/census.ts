import { Webhook } from 'standardwebhooks';
import type { ReceivedRequest } from './endpoint.js';
import type { Production } from './production.js';

/** A run's results in the database and at the receiver, to compare with the produced messages. */
export interface Census {
  /** The number of arrivals by message number (`data.n`). */
  readonly arrivals: ReadonlyMap<number, number>;
  /** Requests with a signature that the Standard Webhooks library refuses. */
  readonly badSignatures: number;
  readonly events: number;
  readonly deliveries: Readonly<Record<string, number>>;
  readonly attempts: number;
  readonly quarantined: number;
  /** Deliveries recovered from a dead agent: each can have arrived twice. */
  readonly recovered: number;
}

export async function census(
  gateway: Production,
  requests: readonly ReceivedRequest[],
  secret: string,
): Promise<Census> {
  const webhook = new Webhook(secret);
  const arrivals = new Map<number, number>();
  let badSignatures = 0;
  for (const { body, headers } of requests) {
    try {
      const { n } = webhook.verify(body, { ...headers }) as { n: number };
      arrivals.set(n, (arrivals.get(n) ?? 0) + 1);
    } catch {
      badSignatures++;
    }
  }
  const [row] = await gateway.database.rows<{
    events: number;
    deliveries: Record<string, number> | null;
    attempts: number;
    quarantined: number;
    recovered: number;
  }>(
    `select (select count(*)::int from events) as events,
            (select json_object_agg(status, n) from (select status, count(*)::int as n from event_deliveries group by status) s) as deliveries,
            (select count(*)::int from delivery_attempts) as attempts,
            (select count(*)::int from quarantined_messages) as quarantined,
            (select coalesce(sum(recovered), 0)::int from event_deliveries) as recovered`,
  );
  return { arrivals, badSignatures, ...row!, deliveries: row!.deliveries ?? {} };
}

/** Returns the numbers below `count` that did not arrive. */
export function missing(
  arrivals: ReadonlyMap<number, number>,
  count: number,
  except: (n: number) => boolean = () => false,
): number[] {
  return Array.from({ length: count }, (_, n) => n).filter((n) => !except(n) && !arrivals.has(n));
}

/** Returns an ingest message of about 1 KB that carries its number. */
export function numbered(n: number): string {
  return JSON.stringify({ event_type: 'order.created', data: { n, note: 'x'.repeat(900) } });
}
