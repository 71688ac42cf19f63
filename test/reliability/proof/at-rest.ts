import { setTimeout as sleep } from 'node:timers/promises';
import type { TestBed } from './test-bed.js';

/** What is not over yet, in words; nothing when all is. */
async function underWay({ rows, offsets }: TestBed): Promise<string> {
  // First: what is acknowledged by then is in the rows. A message that was hidden comes back and is acknowledged within milliseconds.
  const { kafka, sqs } = await offsets();
  const [row] = await rows<{ events: number; deliveries: number }>(
    `select (select count(*)::int from events where status = 'pending') as events,
            (select count(*)::int from event_deliveries where status in ('scheduled', 'processing', 'retry')) as deliveries`,
  );
  const unread = kafka.reduce((sum, { end, committed }) => sum + end - Math.max(0, committed), 0);
  const counts = {
    'events to route': row!.events,
    'deliveries to make': row!.deliveries,
    'messages of the topic': unread,
    'messages of the queue': sqs.ready + sqs.inFlight,
  };
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${count} ${what}`)
    .join(', ');
}

/**
 * Waits until nothing is under way any more, or gives up when that has not changed for so long.
 * @returns what is still under way; empty when everything is over
 */
export async function atRest(bed: TestBed, { patienceMs }: { patienceMs: number }): Promise<string> {
  let last = '';
  let changedAtMs = performance.now();
  for (;;) {
    const now = await underWay(bed).catch((error: unknown) => `nobody knows what (${(error as Error).message})`);
    if (now === '') return '';
    if (now !== last) [last, changedAtMs] = [now, performance.now()];
    if (performance.now() - changedAtMs > patienceMs) return now;
    await sleep(250);
  }
}
