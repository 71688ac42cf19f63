// deadline: 240 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { arena, PATIENCE_MS, type Arena } from './arena.js';
import { attacks } from './attacks.js';
import { faultsOf } from './judge.js';

// The short form of `npm run hostile`: checks that each attack reaches its limit, that the
// neighbour loses nothing and does not wait for the end of the attack, and that no process grows.
// The long form, on a dedicated machine, measures the neighbour's latency.

const hostile = suite('hostile/hostile');
const SCALE = 0.1;
const SECONDS = 1;

let scene: Arena;
hostile.before(async () => void (scene = await arena(SCALE)));
hostile.after(() => scene?.close());

for (const attack of attacks.filter(({ isLong }) => !isLong))
  hostile(attack.name, async () => {
    const beside = await scene.measure(SECONDS, attack.name);
    assert.equal(faultsOf(attack, { beside: [beside] }), []);
    const worst = Math.max(...beside.deliveries);
    console.log(`  ${attack.name}: ${worst.toFixed(0)} ms at most`);
    assert.ok(worst < PATIENCE_MS, `${worst} ms: as long as the attack`);
  });

hostile.run();
