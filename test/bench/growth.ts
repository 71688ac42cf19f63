// Measures how the cost of an event grows with shards, agents, partitions, history, subscriptions,
// projects and endpoints, and how soon an agent starts and follows a change. Run: npm run bench --
// growth [--only shards,agents] [--sizes 1,4] [--requests 20000] [--rounds 5] [--starts 5] [--changes 10]
import { parseArgs } from 'node:util';
import { measureBursts } from './growth/burst.js';
import { dimensions } from './growth/dimensions.js';
import { measureFollowing } from './growth/following.js';
import { chartOf, tableOf, type Measured } from './growth/report.js';
import { openGround } from './ground.js';

const FOLLOWING = 'following';
const { values } = parseArgs({
  options: {
    only: { type: 'string', default: [...dimensions.map(({ name }) => name), FOLLOWING].join() },
    sizes: { type: 'string', default: '' },
    requests: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '5' },
    starts: { type: 'string', default: '5' },
    changes: { type: 'string', default: '10' },
  },
});
const [requests, rounds, starts, changes] = [
  values.requests,
  values.rounds,
  values.starts,
  values.changes,
].map(Number) as [number, number, number, number];
const only = values.only.split(',');
const sizes = values.sizes.split(',').filter(Boolean).map(Number);

const ground = await openGround();
try {
  console.log(`${ground.banner}\n${requests} requests in a burst, ${rounds} bursts`);
  const all = new Map<string, readonly Measured[]>();
  for (const { name, sizes: usual, warm = () => 1, requests: own, open } of dimensions) {
    if (!only.includes(name)) continue;
    const measured: Measured[] = [];
    for (const size of sizes.length > 0 ? sizes : usual) {
      const load = await open(ground, size);
      try {
        const each = own?.(size) ?? requests;
        const figures = await measureBursts(ground, load, {
          requests: each,
          warm: each * warm(size),
          rounds,
        });
        measured.push({ size, figures });
        console.error(`${size} ${name}: ${JSON.stringify(figures)}`);
      } finally {
        await load.close();
      }
    }
    all.set(name, measured);
    console.log(`\n${tableOf(name, measured)}`);
  }
  if (all.size > 1) console.log(`\n${chartOf(all)}`);
  if (only.includes(FOLLOWING)) await measureFollowing(ground, { rounds: starts, changes });
} finally {
  await ground.close();
}
