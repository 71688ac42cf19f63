// The process of an attack. Gets an `Order` as its first message, tells when the attack runs, and its `Evidence` after the second.
import { once } from 'node:events';
import os from 'node:os';
import { attacks } from './attacks.js';
import { Tenant, type Order } from './tenant.js';

// An attacker has machines of their own: what they compute here is not to be taken from whoever is measured.
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
