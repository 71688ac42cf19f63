import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  claimDue,
  recoverDeliveries,
  releaseDeliveries,
  type ClaimedDelivery,
} from '#store/deliveries/claims';
import { recordOrderedAttempts } from '#store/deliveries/delivery-attempts';
import { resendEventDelivery } from '#store/deliveries/delivery-log';
import { acceptEvents, type NewEventDelivery } from '#store/events/events';
import { discardKey, skipDelivery } from '#store/ordering/keys';
import { advanceKeys, repairKeys, sweepKeys } from '#store/ordering/settle-keys';
import type { OrderedKey } from '#store/events/turns';
import {
  attempt,
  batch,
  empty,
  ENDPOINT,
  newDelivery,
  newEvent,
  PROJECT,
  sorted,
} from '../batches.js';
import { migratedDatabase } from '../migrated.js';

/*
 * A model of the order by key: a list of deliveries per key, of which only the first may be due or
 * claimed. The store must agree with it after each step.
 */

const model = suite('store/ordering/model');

const db = await migratedDatabase();
const planes = { control: db.pool, data: db.pool };
model.after(() => db.close());
model.before.each(() => empty(db));

const KEYS = ['a', 'b', 'c'].map((letter) => `0000000${letter}-0000-4000-8000-000000000000`);
const keyOf = (orderKey: string): OrderedKey => ({
  projectId: PROJECT,
  endpointId: ENDPOINT,
  orderKey,
});

/** Commits deliveries with these keys, in this order. */
async function accept(
  keys: readonly (string | null)[],
  { agentId = 1, follows = true, isClaiming = true } = {},
): Promise<NewEventDelivery[]> {
  const events = keys.map(() => newEvent());
  const claimed = new Set<string | null>([null]);
  const deliveries = events.map((event, n) => {
    const orderKey = keys[n]!;
    const isFirst = isClaiming && !claimed.has(orderKey);
    claimed.add(orderKey);
    const status = isFirst ? 'processing' : 'scheduled';
    return newDelivery(event, { orderKey, orderText: orderKey ?? '', status });
  });
  const { turns } = await acceptEvents(db.pool, batch(sorted(events), { deliveries, agentId }));
  const waiting = deliveries.filter(({ id, orderKey }) => orderKey && !turns!.has(id));
  if (follows)
    await advanceKeys(
      db.pool,
      waiting.map(({ orderKey }) => keyOf(orderKey!)),
    );
  return deliveries;
}

interface Row {
  readonly id: string;
  readonly order_key: string | null;
  readonly is_sent: boolean;
  readonly is_due: boolean;
  readonly status: string;
}

const readRows = () =>
  db.rows<Row & Record<string, unknown>>(
    `select id, order_key, status::text, status = 'processing' as is_sent, next_attempt_at is not null as is_due from event_deliveries`,
  );

class Model {
  /** Per key, the deliveries that have not ended. */
  readonly #lists = new Map<string, string[]>(KEYS.map((key) => [key, []]));
  readonly #parked = new Set<string>();
  readonly #ended: NewEventDelivery[] = [];
  readonly #all = new Map<string, NewEventDelivery>();
  #claimed: ClaimedDelivery[] = [];

  async accept(keys: readonly (string | null)[], isClaiming: boolean): Promise<void> {
    for (const delivery of await accept(keys, { isClaiming })) {
      this.#all.set(delivery.id, delivery);
      if (delivery.orderKey) this.#lists.get(delivery.orderKey)!.push(delivery.id);
    }
    await this.#readClaimed();
  }

  /** As an agent knows what it claims with a commit. */
  async #readClaimed(): Promise<void> {
    const rows = await readRows();
    for (const { id, is_sent } of rows)
      if (is_sent && !this.#claimed.some((it) => it.id === id)) {
        const given = this.#all.get(id)!;
        this.#claimed.push({ ...given, attempts: 0, agentId: 1 } as unknown as ClaimedDelivery);
      }
  }

  async claim(): Promise<void> {
    const { claimed } = await claimDue(db.pool, 1, {
      projectId: PROJECT,
      statuses: ['scheduled', 'retry'],
      exceptEndpoints: [],
      limit: 3,
    });
    for (const { id, orderKey } of claimed)
      if (orderKey) assert.is(this.#lists.get(orderKey)![0], id, 'only the first of a key is sent');
    this.#claimed.push(...claimed);
  }

  async end(n: number, how: 'success' | 'retry' | 'park' | 'pass'): Promise<void> {
    const delivery = this.#taken(n);
    if (!delivery) return;
    const status = how === 'park' || how === 'pass' ? 'failure' : how;
    await recordOrderedAttempts(db.pool, [
      attempt(delivery, {
        number: delivery.attempts + 1,
        status,
        dueInMs: status === 'retry' ? 0 : null,
        onEnd: delivery.orderKey ? (how === 'park' ? 'park' : 'pass') : null,
      }),
    ]);
    if (how === 'retry') return;
    if (how === 'park' && delivery.orderKey) this.#parked.add(delivery.orderKey);
    else this.#end(delivery.id);
  }

  #taken(n: number): ClaimedDelivery | undefined {
    return this.#claimed.length === 0
      ? undefined
      : this.#claimed.splice(n % this.#claimed.length, 1)[0];
  }

  #end(id: string): void {
    const delivery = this.#all.get(id)!;
    this.#ended.push(delivery);
    const list = this.#lists.get(delivery.orderKey ?? '');
    list?.splice(list.indexOf(id), 1);
  }

  async release(n: number, to: 'due' | 'discarded'): Promise<void> {
    const delivery = this.#taken(n);
    if (!delivery) return;
    const how = to === 'due' ? ({ to, dueInMs: 0 } as const) : ({ to, reason: 'gone' } as const);
    await releaseDeliveries(db.pool, 1, [delivery], how);
    if (to === 'due') return;
    if (delivery.orderKey) await repairKeys(db.pool, [keyOf(delivery.orderKey)]);
    this.#end(delivery.id);
  }

  async kill(): Promise<void> {
    this.#claimed = [];
    await recoverDeliveries(db.pool, { orphans: true });
  }

  async skip(key: string): Promise<void> {
    const [first] = this.#lists.get(key)!;
    const isSent = this.#claimed.some(({ id }) => id === first);
    const due = await skipDelivery(db.pool, keyOf(key), 'Skipped.');
    assert.is(due !== undefined, first !== undefined && !isSent, 'what is sent cannot be skipped');
    if (!due) return;
    this.#parked.delete(key);
    this.#end(first!);
  }

  async discard(key: string): Promise<void> {
    const [first, ...others] = this.#lists.get(key)!;
    const isSent = this.#claimed.some(({ id }) => id === first);
    const { discarded } = await discardKey(db.pool, keyOf(key), 'Discarded.');
    assert.is(discarded, others.length + (first !== undefined && !isSent ? 1 : 0));
    for (const id of others) this.#end(id);
    if (first === undefined || isSent) return;
    this.#parked.delete(key);
    this.#end(first);
  }

  /** A parked one is tried again; one that has ended goes behind those that wait. */
  async resend(n: number, key: string): Promise<void> {
    const parked = this.#parked.has(key) ? this.#lists.get(key)![0] : undefined;
    const delivery = parked
      ? this.#all.get(parked)
      : this.#ended.splice(n % (this.#ended.length || 1), 1)[0];
    if (!delivery) return;
    const { projectId: project_id, id, endpointId: endpoint_id } = delivery;
    const from = ['success', 'failure', 'discarded'] as const;
    assert.ok(await resendEventDelivery(planes, { project_id, id, endpoint_id }, from));
    if (parked) this.#parked.delete(key);
    else if (delivery.orderKey) this.#lists.get(delivery.orderKey)!.push(id);
  }

  async check(): Promise<void> {
    const rows = await readRows();
    for (const [key, list] of this.#lists) {
      const going = rows.filter((it) => it.order_key === key && (it.is_sent || it.is_due));
      const expected = this.#parked.has(key) ? [] : list.slice(0, 1);
      assert.equal(
        going.map(({ id }) => id),
        expected,
        `of ${key}, only the first of ${list.length} is sent or due`,
      );
    }
    const places = await db.rows<{ delivery_id: string }>(
      'select delivery_id from ordered_deliveries',
    );
    assert.equal(
      places.map(({ delivery_id }) => delivery_id).sort(),
      [...this.#lists.values()].flat().sort(),
      'who waits has a place',
    );
    assert.equal(await sweepKeys(db.pool, new Map()), [], 'nothing is left to a sweep');
  }
}

model('the store agrees with a model after any steps', async () => {
  const number = fc.nat(20);
  const key = fc.constantFrom(...KEYS);
  const steps = fc.array(
    fc.oneof(
      {
        weight: 3,
        arbitrary: fc.tuple(
          fc.constant('accept' as const),
          fc.array(fc.constantFrom(null, ...KEYS), { minLength: 1, maxLength: 4 }),
          fc.boolean(),
        ),
      },
      { weight: 3, arbitrary: fc.tuple(fc.constant('claim' as const)) },
      {
        weight: 6,
        arbitrary: fc.tuple(
          fc.constant('end' as const),
          number,
          fc.constantFrom('success', 'success', 'retry', 'park', 'pass'),
        ),
      },
      fc.tuple(fc.constant('release' as const), number, fc.constantFrom('due', 'discarded')),
      fc.tuple(fc.constant('kill' as const)),
      fc.tuple(fc.constant('skip' as const), key),
      fc.tuple(fc.constant('discard' as const), key),
      fc.tuple(fc.constant('resend' as const), number, key),
    ),
    { minLength: 10, maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      await empty(db);
      const it = new Model();
      for (const [name, ...given] of all) {
        await (it[name] as (...given: unknown[]) => Promise<void>).apply(it, given);
        await it.check();
      }
    }),
    { numRuns: 40, includeErrorInReport: true },
  );
});

/*
 * Agents that accept, claim and record at the same time. No sweep runs: the protocol holds by itself.
 */
model('agents at work together keep the order of each key, one at a time', async () => {
  const partitions = 4;
  const [commits, each] = [25, 6];
  const order = new Map<string, { partition: number; n: number }>();
  const sent = new Map<string, { partition: number; n: number }[]>();
  const underWay = new Set<string>();
  let ended = 0;
  let left = partitions * commits * each;
  const random = (max: number) => Math.floor(Math.random() * max);

  const ingest = async (partition: number) => {
    let n = 0;
    for (let commit = 0; commit < commits; commit++) {
      const keys = Array.from({ length: each }, () => KEYS[random(KEYS.length)]!);
      for (const { id } of await accept(keys, { isClaiming: false, agentId: partition + 1 }))
        order.set(id, { partition, n: n++ });
      if (random(4) === 0) await new Promise((resolve) => setTimeout(resolve, random(10)));
    }
  };
  const send = async (agentId: number) => {
    for (; ended < left;) {
      const { claimed } = await claimDue(db.pool, agentId, {
        projectId: PROJECT,
        statuses: ['scheduled', 'retry'],
        exceptEndpoints: [],
        limit: 1 + random(3),
      });
      for (const { orderKey } of claimed) {
        assert.not(underWay.has(orderKey!), 'one of a key at a time');
        underWay.add(orderKey!);
      }
      if (claimed.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      const results = claimed.map((delivery) => {
        const status = random(5) === 0 ? 'retry' : random(10) === 0 ? 'failure' : 'success';
        return attempt(delivery, {
          agentId,
          number: delivery.attempts + 1,
          status,
          dueInMs: status === 'retry' ? 0 : null,
          onEnd: 'pass',
        });
      });
      for (const { orderKey } of claimed) underWay.delete(orderKey!);
      for (const [k, { status, id }] of results.entries()) {
        if (status === 'retry') continue;
        ended++;
        const key = claimed[k]!.orderKey!;
        sent.set(key, [...(sent.get(key) ?? []), order.get(id) ?? { partition: -1, n: -1 }]);
      }
      if (results.length > 0) await recordOrderedAttempts(db.pool, results);
    }
  };
  const stuck = setTimeout(() => (left = 0), 30_000);
  await Promise.all([
    ...Array.from({ length: partitions }, (_, partition) => ingest(partition)),
    ...[11, 12, 13].map((agentId) => send(agentId)),
  ]);
  clearTimeout(stuck);
  assert.is(ended, partitions * commits * each, 'all are sent, without a sweep');
  for (const list of sent.values())
    for (let partition = 0; partition < partitions; partition++) {
      const numbers = list.filter((it) => it.partition === partition).map(({ n }) => n);
      assert.equal(
        numbers,
        numbers.toSorted((a, b) => a - b),
      );
    }
  assert.equal(await db.rows('select from ordered_keys'), []);
  assert.equal(await db.rows('select from ordered_deliveries'), []);
});

model.run();
