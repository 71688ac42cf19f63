import { setTimeout as sleep } from 'node:timers/promises';
import type { Witnesses } from './reconcile.js';

type Queues = Pick<Witnesses, 'shards' | 'offsets'>;

/** Describes work in progress; empty if there is none. */
async function underWay({ shards, offsets }: Queues): Promise<string> {
  // Read first: anything acknowledged by now is in the rows. A hidden message reappears and is
  // acknowledged within milliseconds.
  const { kafka, sqs } = await offsets();
  const waiting = await Promise.all(
    shards.map((rows) =>
      rows<{ events: number; deliveries: number; moves: number }>(
        `select (select count(*)::int from events where status = 'pending') as events,
                (select count(*)::int from event_deliveries where status in ('scheduled', 'processing', 'retry')) as deliveries,
                (select count(*)::int from project_fences f where through <> 'ffffffff-ffff-ffff-ffff-ffffffffffff'
                   or through is not null and (exists (select from events e where e.project_id = f.project_id)
                     or exists (select from event_counts c where c.project_id = f.project_id))) as moves`,
      ),
    ),
  );
  const total = (key: 'events' | 'deliveries' | 'moves') =>
    waiting.reduce((sum, [row]) => sum + row![key], 0);
  const unread = kafka.reduce((sum, { end, committed }) => sum + end - Math.max(0, committed), 0);
  const counts = {
    'events to route': total('events'),
    'deliveries to make': total('deliveries'),
    'projects to move': total('moves'),
    'messages of the topic': unread,
    'messages of the queue': sqs.ready + sqs.inFlight,
  };
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${count} ${what}`)
    .join(', ');
}

/**
 * Waits until no work is in progress, or gives up after `patienceMs` without a change.
 * @returns the unfinished work; empty if there is none
 */
export async function atRest(
  queues: Queues,
  { patienceMs }: { patienceMs: number },
): Promise<string> {
  let last = '';
  let changedAtMs = performance.now();
  for (;;) {
    const now = await underWay(queues).catch(
      (error: unknown) => `nobody knows what (${(error as Error).message})`,
    );
    if (now === '') return '';
    if (now !== last) [last, changedAtMs] = [now, performance.now()];
    if (performance.now() - changedAtMs > patienceMs) return now;
    await sleep(250);
  }
}
