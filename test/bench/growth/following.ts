import { setTimeout as sleep } from 'node:timers/promises';
import { heldBy } from '../../support/memory.js';
import { kafkaSource, production, subscribed } from '../../support/production.js';
import { median, ms, round } from '../figures.js';
import type { Ground } from '../ground.js';
import { produce, startReceiver } from '../systems.js';
import { addProjects, addReceivers } from './fill.js';

const PROJECTS = 10_000;
const SUBSCRIPTIONS = 10;
const RATE = 200;
const GAP_MS = 500;
/** The time that the server is given to read the projects too, so that it does not delay a start. */
const SERVER_READS_MS = 5_000;

/**
 * With 10,000 projects and 100,000 subscriptions: measures the start of an agent, and the time from
 * the request that creates a subscription to the first delivery that it causes, while messages
 * arrive.
 */
export async function measureFollowing(
  { topics, receiver }: Ground,
  { rounds, changes }: { rounds: number; changes: number },
): Promise<void> {
  const other = await startReceiver();
  const gateway = await production({ agents: 0 });
  try {
    await subscribed(gateway, receiver.url);
    const { uid: otherId } = await gateway.api('POST', '/endpoints', {
      name: 'other',
      url: other.url,
    });
    const topic = await kafkaSource(gateway, topics, 2);
    await addReceivers(gateway, await addProjects(gateway, PROJECTS - 1), {
      url: receiver.url,
      subscriptions: SUBSCRIPTIONS,
      eventType: 'order.created',
    });
    await sleep(SERVER_READS_MS);

    const starts: { readonly tookMs: number; readonly mb: number }[] = [];
    for (let k = 0; k < rounds; k++) {
      for (const { process } of gateway.agents.splice(0)) await process.terminate();
      const beganMs = performance.now();
      const { process } = await gateway.startAgent();
      starts.push({ tookMs: performance.now() - beganMs, mb: heldBy(process.pid)?.rssMb ?? 0 });
    }
    const worst = Math.max(...starts.map(({ tookMs }) => tookMs));
    console.log(
      `\n${round(PROJECTS)} projects, ${round(PROJECTS * SUBSCRIPTIONS)} subscriptions: an agent is ready after ${ms(median(starts, (it) => it.tookMs).tookMs)}, at worst ${ms(worst)}, with ${round(median(starts, (it) => it.mb).mb)} MB (${rounds} starts: ${starts.map(({ tookMs }) => ms(tookMs)).join(', ')})`,
    );

    const seconds = (changes * (GAP_MS * 2)) / 1000 + 10;
    const producing = produce(topics, topic, { count: RATE * seconds, rate: RATE, from: 0 });
    await receiver.reset();
    while ((await receiver.report()).count < RATE) await sleep(50);
    const took: number[] = [];
    for (let k = 0; k < changes; k++) {
      await other.reset();
      const beganMs = performance.now();
      const { uid } = await gateway.api('POST', '/subscriptions', {
        name: 'change',
        endpoint_id: otherId,
        filter_config: { event_types: ['order.created'] },
      });
      while ((await other.report()).count === 0) {
        if (performance.now() - beganMs > 10_000) throw new Error('a change was not followed');
        await sleep(2);
      }
      took.push(performance.now() - beganMs);
      await gateway.api('DELETE', `/subscriptions/${uid}`);
      await sleep(GAP_MS);
    }
    await producing;
    console.log(
      `a new subscription causes its first delivery after ${ms(median(took, (it) => it))}, at worst ${ms(Math.max(...took))} (${changes} changes, ${RATE} events/s meanwhile)`,
    );
  } finally {
    other.close();
    await gateway.close();
  }
}
