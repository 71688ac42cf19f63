// The process of an attack. Receives an `Order` as first message and reports that the attack runs;
// sends its `Evidence` after the second message.
import { once } from 'node:events';
import os from 'node:os';
import { attacks } from './attacks.js';
import { Tenant, type Order } from './tenant.js';

// An attacker has a separate machine: its computations here must not slow down the measured
// processes.
os.setPriority(19);
process.once('disconnect', () => process.exit());

const [order] = (await once(process, 'message')) as [Order];
const over = new AbortController();
const tenant = new Tenant(order, over.signal);
const attack = attacks.find(({ name }) => name === order.attack);
if (!attack) throw new Error(`there is no attack "${order.attack}"`);
await attack.prepare?.(tenant);
const running = attack.run(tenant);
process.send?.('runs');
await once(process, 'message');
over.abort();
await running;
process.send?.(tenant.evidence);
