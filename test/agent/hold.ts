import type { InFlightDelivery } from '#agent/model/delivery';
import { acceptEvents, type NewEvent } from '#store/events/events';
import { batch, newDelivery, newEvents } from '../store/batches.js';
import { until } from '../support/until.js';
import type { RunningAgent } from './running.js';

/**
 * Commits events with a delivery each to the endpoint, held by the running agent, as the event
 * writer does. `of` can name a subscription.
 * @returns the deliveries, to be held in flight
 */
export async function hold(
  running: RunningAgent,
  endpointId: string,
  count: number,
  event: Partial<NewEvent> = {},
  of: string | null = null,
): Promise<InFlightDelivery[]> {
  const { agentId } = running.wiring.lease;
  const held: InFlightDelivery[] = [];
  for (let left = count; left > 0; left -= 500) {
    const events = newEvents(Math.min(left, 500), { projectId: running.projectId, ...event });
    const deliveries = events.map((one) => newDelivery(one, { endpointId, subscriptionId: of }));
    await acceptEvents(running.db.pool, batch(events, { deliveries, agentId }));
    for (const [
      k,
      { id, occurredAtMs, eventId, projectId, subscriptionId },
    ] of deliveries.entries()) {
      const { eventType, sourceId, headers, data } = events[k]!;
      held.push({
        projectId,
        id,
        occurredAtMs,
        eventId,
        endpointId,
        subscriptionId,
        isTransformed: false,
        attempts: 0,
        eventType,
        sourceId,
        traceparent: null,
        orderKey: null,
        headers:
          typeof headers === 'string' ? (JSON.parse(headers) as Record<string, string>) : headers,
        body: Buffer.from(data),
        agentId,
      });
    }
  }
  return held;
}

/**
 * Counts an endpoint's deliveries by status; waiting ones with the suffix `due`, `later` or `held`.
 */
export async function states(
  { db }: Pick<RunningAgent, 'db'>,
  endpointId: string,
): Promise<Record<string, number>> {
  const rows = await db.rows<{ state: string; n: number }>(
    `select status || case when next_attempt_at = 'infinity' then ' held' when next_attempt_at > now() then ' later' when next_attempt_at is not null then ' due' else '' end as state, count(*)::int as n
     from event_deliveries where endpoint_id = $1 group by 1`,
    [endpointId],
  );
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
}

export async function delivered(
  of: Pick<RunningAgent, 'db'>,
  endpointId: string,
  count: number,
  what = 'all deliveries',
): Promise<void> {
  await until(what, async () => (await states(of, endpointId))['success'] === count);
}
