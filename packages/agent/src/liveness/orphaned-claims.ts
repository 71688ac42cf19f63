import type { Log } from '@gateway/core/logging';
import { readClaimed, releaseDeliveries } from '@gateway/store/deliveries';
import type { Database } from '@gateway/store/postgres';
import type { Claimer } from '../delivery/claimer.js';
import type { Scheduler } from '../delivery/scheduler.js';

/**
 * Gives back what this agent has claimed and does not hold: when a connection breaks between a commit and its answer, the rows say that the agent has them
 * and the agent does not know. No other agent would take them while this one lives.
 *
 * @param olderThanMs how long ago they were claimed at least: younger ones may be on their way
 * @returns how many move again
 */
export async function releaseOrphanedClaims(
  { database, scheduler, claimer, log, agentId }: { database: Database; scheduler: Scheduler; claimer: Claimer; log: Log; agentId: number },
  olderThanMs: number,
): Promise<number> {
  const claimed = await readClaimed(database.pool, agentId, olderThanMs);
  const unheld = claimed.filter((delivery) => !scheduler.holds(delivery.id));
  if (unheld.length === 0) return 0;
  log.info({ deliveries: unheld.length }, 'Deliveries whose claim was answered to nobody move again.');
  await releaseDeliveries(database.pool, agentId, unheld, { to: 'due', dueInMs: 0 });
  for (const projectId of new Set(unheld.map((delivery) => delivery.projectId))) claimer.due(projectId, 0);
  return unheld.length;
}
