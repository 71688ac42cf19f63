import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { recordAttempts } from '#store/deliveries/delivery-attempts';
import { acceptEvents } from '#store/events/events';
import { quarantineMessages } from '#store/quarantine/messages';
import {
  attempt,
  batch,
  newDelivery,
  newEvent,
  quarantinedMessage,
  sorted,
  SOURCE,
} from '../store/batches.js';
import { migratedDatabase } from '../store/migrated.js';
import { reconcile, type Report, type Offsets } from './proof/reconcile.js';
import type { Arrival, Journal, Produced } from './proof/journal.js';
import { textOf } from './proof/messages.js';
import { reportTable } from './proof/table.js';

const reconciling = suite('reliability/reconcile');

const db = await migratedDatabase();
reconciling.after(() => db.close());

/** The time of each request of the run: the start of a second. */
const AT = 1000 * Math.floor(Date.now() / 1000) - 300_000;
const TOOK_MS = 100;

const produced = Array.from({ length: 10 }, (_, n): Produced => ({
  n,
  project: 0,
  via: n < 6 ? 'kafka' : 'sqs',
  poisoned: n === 3 || n === 7,
  acknowledgedByBroker: true,
}));
const coordinatesOf = ({ n, via }: Produced) =>
  via === 'kafka' ? `orders/${n % 2}/${n >> 1}` : `message-${n}`;
const good = produced.filter(({ poisoned }) => !poisoned);
const events = good.map((message) =>
  newEvent({ coordinates: coordinatesOf(message), data: `{"n":${message.n}}` }),
);
const deliveries = events.map((event) => newDelivery(event));
const ids = new Map(
  good.map(({ n }, k) => [n, { event: events[k]!.id, delivery: deliveries[k]!.id }]),
);

await acceptEvents(db.pool, batch(sorted(events), { deliveries }));
await recordAttempts(
  db.pool,
  deliveries.map((delivery) => attempt(delivery, { requestedAtMs: AT, durationMs: TOOK_MS })),
);
await quarantineMessages(
  db.pool,
  produced
    .filter(({ poisoned }) => poisoned)
    .map((message) =>
      quarantinedMessage({
        coordinates: coordinatesOf(message),
        raw: Buffer.from(textOf(message)),
      }),
    ),
);

const arrivals = good.map(({ n }): Arrival => ({
  n,
  webhookId: ids.get(n)!.delivery,
  sentAtSeconds: AT / 1000,
  atMs: AT + 10,
  status: 200,
  isSigned: true,
}));
const balanced: Journal = { seed: 1, produced, arrivals, faults: [], kills: [] };
const offsets: Offsets = {
  kafka: [0, 1].map((partition) => ({ topic: 'orders', partition, committed: 3, end: 3 })),
  sqs: { ready: 0, inFlight: 0 },
};
const again = (n: number, more: Partial<Arrival> = {}): Arrival => ({
  ...arrivals.find((one) => one.n === n)!,
  ...more,
});
const without = (...numbers: readonly number[]) => arrivals.filter(({ n }) => !numbers.includes(n));

/**
 * Returns the report after these statements, with these replacements of the observations. Rolls
 * back.
 */
async function booksAfter(
  statements: readonly string[],
  { journal = {}, brokers = {} }: { journal?: Partial<Journal>; brokers?: Partial<Offsets> } = {},
): Promise<Report> {
  await db.rows('begin');
  try {
    for (const statement of statements) await db.rows(statement);
    return await reconcile({
      journal: { ...balanced, ...journal },
      rows: db.rows,
      shards: [db.rows],
      offsets: () => Promise.resolve({ ...offsets, ...brokers }),
    });
  } finally {
    await db.rows('rollback');
  }
}

/** Returns the findings of wrong lines, by line. */
async function wrongAfter(
  ...options: Parameters<typeof booksAfter>
): Promise<Record<string, string>> {
  const { lines, isBalanced } = await booksAfter(...options);
  const wrong = lines.filter(({ ok }) => !ok);
  assert.is(isBalanced, wrong.length === 0);
  return Object.fromEntries(wrong.map(({ what, found }) => [what, found]));
}

const RECOUNT = 'select recount_finished()';
const forget = (n: number) => [
  `delete from delivery_attempts where event_delivery_id = '${ids.get(n)!.delivery}'`,
  `delete from event_deliveries where id = '${ids.get(n)!.delivery}'`,
  `delete from events where id = '${ids.get(n)!.event}'`,
  RECOUNT,
];
const copyOfEvent = (n: number, more: string) =>
  `insert into events select (jsonb_populate_record(e, '${more}'::jsonb)).* from events e where id = '${ids.get(n)!.event}'`;
const OTHER_ID = '"id": "01999999-0000-8000-8000-000000000001"';

const KAFKA = 'messages of Kafka: delivered + in quarantine + pending or failed';
const SQS = 'messages of SQS: delivered + in quarantine + pending or failed';
const COORDINATES = 'events that are there twice, by coordinates';
const NUMBER = 'events that are there twice, by message number';
const QUARANTINE = 'poisoned messages in quarantine: each once, byte for byte';
const GENUINE = 'requests with a valid signature and the id of a delivery';
const LOGGED = 'requests in the attempt log + in flight at a kill';
const INVENTED = 'answers on record that the receiver did not give';
const REPEATS = 'repeats after a success: taken from an agent + answer lost';
const OFFSETS = 'messages before the committed offsets that are in Postgres';
const QUEUE = 'messages left in the queue: waiting + with a reader';
const LEASE = 'deliveries held beyond a lease';
const UNROUTED = 'events waiting to be routed, forgotten';
const OVERDUE = 'deliveries due, forgotten';
const LEFT = 'deliveries that wait for an endpoint that cannot have them';
const COUNTS = 'counts that differ from the rows';

reconciling(
  'the report balances when all that was produced was delivered or is in quarantine',
  async () => {
    assert.equal(await wrongAfter([]), {});
  },
);

reconciling(
  'a message that is nowhere is missing, and the offset that was committed past it is ahead of Postgres',
  async () => {
    assert.equal(await wrongAfter(forget(4), { journal: { arrivals: without(4) } }), {
      [KAFKA]: '4 + 1 + 0; missing 1: 4',
      [OFFSETS]: '5; not in Postgres 1: 0/2',
    });
    assert.equal(await wrongAfter(forget(8), { journal: { arrivals: without(8) } }), {
      [SQS]: '2 + 1 + 0; missing 1: 8',
    });
  },
);

reconciling(
  'an event that was routed to nobody, or whose success nobody saw, is missing',
  async () => {
    const { delivery } = ids.get(0)!;
    const undelivered = [
      `delete from delivery_attempts where event_delivery_id = '${delivery}'`,
      RECOUNT,
    ];
    assert.equal(
      await wrongAfter([`delete from event_deliveries where id = '${delivery}'`, ...undelivered], {
        journal: { arrivals: without(0) },
      }),
      {
        [KAFKA]: '4 + 1 + 0; missing 1: 0',
      },
    );
    assert.equal(await wrongAfter(undelivered, { journal: { arrivals: without(0) } }), {
      [KAFKA]: '4 + 1 + 0; missing 1: 0',
    });
  },
);

reconciling(
  'an event that is pending or has failed, and a delivery that is not over, are visible',
  async () => {
    const { event, delivery } = ids.get(0)!;
    const undelivered = [`delete from delivery_attempts where event_delivery_id = '${delivery}'`];
    const states = [
      [
        `delete from event_deliveries where id = '${delivery}'`,
        `update events set status = 'pending', outcome = null where id = '${event}'`,
      ],
      [
        `update event_deliveries set status = 'retry', next_attempt_at = now() + interval '1 hour' where id = '${delivery}'`,
      ],
      [`update event_deliveries set status = 'failure' where id = '${delivery}'`],
    ];
    for (const state of states) {
      const { lines, isBalanced } = await booksAfter([...undelivered, ...state, RECOUNT], {
        journal: { arrivals: without(0) },
      });
      assert.is(lines.find(({ what }) => what === KAFKA)!.found, '4 + 1 + 1');
      assert.ok(isBalanced);
    }
  },
);

reconciling('a message that its broker did not confirm may be absent, or there twice', async () => {
  const unconfirmed = produced.map((message) => ({
    ...message,
    acknowledgedByBroker: message.n !== 8,
  }));
  assert.equal(
    await wrongAfter(forget(8), { journal: { produced: unconfirmed, arrivals: without(8) } }),
    {},
  );
  const copy = [
    copyOfEvent(8, `{${OTHER_ID}, "coordinates": "message-88", "status": "failed"}`),
    RECOUNT,
  ];
  assert.equal(await wrongAfter(copy, { journal: { produced: unconfirmed } }), {});
});

reconciling(
  'a second event of the same coordinates is found, and one of the same number',
  async () => {
    assert.equal(
      Object.keys(await wrongAfter([copyOfEvent(1, `{${OTHER_ID}, "status": "failed"}`), RECOUNT])),
      [COORDINATES, NUMBER],
    );
    assert.equal(
      await wrongAfter([
        copyOfEvent(1, `{${OTHER_ID}, "status": "failed", "coordinates": "orders/0/9"}`),
        RECOUNT,
      ]),
      {
        [NUMBER]: '1: 1',
      },
    );
  },
);

reconciling('a topic that was recreated has another message at the same coordinates', async () => {
  const faults = [{ kind: 'recreate topic', target: 'topic', atMs: 0, untilMs: 1 }];
  const copy = (id: string) => copyOfEvent(1, `{"id": "${id}", "status": "failed"}`);
  const found = async (...statements: readonly string[]) =>
    Object.keys(await wrongAfter([...statements, RECOUNT], { journal: { faults } }));
  assert.equal(await found(copy(newId())), [NUMBER]);
  assert.equal(await found(copy(newId()), copy(newId())), [COORDINATES, NUMBER]);
});

reconciling('a message that is an event and in quarantine is twice', async () => {
  const coordinates = `update quarantined_messages set coordinates = 'orders/0/0' where coordinates = 'orders/1/1'`;
  assert.equal(await wrongAfter([coordinates]), {
    [COORDINATES]: `1: orders/0/0 of source ${SOURCE}`,
    [OFFSETS]: '5; not in Postgres 1: 1/1',
  });
});

reconciling(
  'a poisoned message that is not in quarantine, there twice, or changed, is found, and a good one that is there',
  async () => {
    const of = `where coordinates = 'message-7'`;
    assert.equal(Object.keys(await wrongAfter([`delete from quarantined_messages ${of}`])), [
      SQS,
      QUARANTINE,
    ]);
    const second = `insert into quarantined_messages select (jsonb_populate_record(q, '{${OTHER_ID}, "coordinates": "message-77"}'::jsonb)).* from quarantined_messages q ${of}`;
    assert.equal(await wrongAfter([second]), { [QUARANTINE]: '1; not once: 1: 7 (2 times)' });
    const changed = await wrongAfter([`update quarantined_messages set raw = raw || ' ' ${of}`]);
    assert.match(changed[QUARANTINE] ?? '', /^1; not once: 1: 7 \(0 times\); not produced so: 1: /);
    const good = `${second.replace('message-77', 'message-66')}; update quarantined_messages set raw = 'fine' where coordinates = 'message-66'`;
    assert.match((await wrongAfter([good]))[QUARANTINE] ?? '', /^2; not produced so: 1: "fine"$/);
  },
);

reconciling(
  'a request with a wrong signature, an unknown id or the id of another message is found',
  async () => {
    const wrong = (more: Partial<Arrival>) =>
      wrongAfter([], { journal: { arrivals: [...without(9), again(9, more)] } });
    assert.equal(await wrong({ isSigned: false }), { [GENUINE]: '7; signature wrong: 1: 9' });
    assert.equal(await wrong({ n: 1 }), {
      [GENUINE]: `7; id wrong: 1: 1 (${ids.get(9)!.delivery})`,
    });
    assert.ok(GENUINE in (await wrong({ webhookId: 'nobody' })));
  },
);

reconciling(
  'a request without an attempt is explained by a kill soon after it, of whose work its delivery was, and by nothing else',
  async () => {
    const { delivery } = ids.get(0)!;
    const statements = (recovered: number) => [
      `delete from delivery_attempts where event_delivery_id = '${delivery}'`,
      `update event_deliveries set status = 'failure', recovered = ${recovered} where id = '${delivery}'`,
      RECOUNT,
    ];
    const kill = (fromMs: number, untilMs = fromMs, kind: 'kill' | 'freeze' = 'kill') => ({
      agent: 'host:1',
      atMs: AT + fromMs,
      untilMs: AT + untilMs,
      kind,
    });
    const fault = (kind: string, target: string, fromMs: number, untilMs: number) => ({
      kind,
      target,
      atMs: AT + fromMs,
      untilMs: AT + untilMs,
    });
    const wrong = (journal: Partial<Journal>, recovered = 1) =>
      wrongAfter(statements(recovered), { journal });
    const unexplained = { [LOGGED]: `7 + 0; neither: 1: 0 (${delivery})` };

    assert.equal(await wrong({}), unexplained);
    assert.equal(await wrong({ kills: [kill(100)] }), {});
    assert.equal(
      await wrong({ kills: [kill(100)] }, 0),
      unexplained,
      'nobody has taken it from a dead agent',
    );
    assert.equal(
      await wrong({ kills: [kill(-15_000, -1), kill(100, 200, 'freeze'), kill(40_000)] }),
      unexplained,
    );
    assert.equal(
      await wrong({ kills: [kill(-15_000, 1)] }),
      {},
      'a drain that was cut off has lasted',
    );
    const outage = fault('crash Postgres', 'postgres', 5_000, 35_000);
    assert.equal(
      await wrong({ faults: [outage] }),
      unexplained,
      'the attempt is written when Postgres is back',
    );
    assert.equal(
      await wrong({ faults: [outage], kills: [kill(40_000)] }),
      {},
      'unless its agent is dead by then',
    );
    assert.equal(
      await wrong({
        faults: [fault('freeze agent', 'agent-1', 5_000, 35_000)],
        kills: [kill(40_000)],
      }),
      {},
    );
  },
);

reconciling(
  'a receiver that is late changes nothing: a request is known by when it was sent',
  async () => {
    const { delivery } = ids.get(0)!;
    const late = { arrivals: [...without(0), again(0, { atMs: AT + 60_000 })] };
    const statements = [
      `delete from delivery_attempts where event_delivery_id = '${delivery}'`,
      `update event_deliveries set status = 'failure', recovered = 1 where id = '${delivery}'`,
      RECOUNT,
    ];
    const kills = [{ agent: 'host:1', atMs: AT + 500, untilMs: AT + 600, kind: 'kill' as const }];
    assert.equal(
      await wrongAfter(statements, { journal: { ...late, kills } }),
      {},
      'its agent is dead',
    );
    const unanswered = [
      `update delivery_attempts set http_status = null, error_class = 'timeout' where event_delivery_id = '${delivery}'`,
      `update event_deliveries set status = 'failure' where id = '${delivery}'`,
      RECOUNT,
    ];
    assert.equal(await wrongAfter(unanswered, { journal: late }), {}, 'its sender has given up');
    const otherSecond = { arrivals: [...without(0), again(0, { sentAtSeconds: AT / 1000 + 2 })] };
    assert.equal(
      Object.keys(await wrongAfter([], { journal: otherSecond })),
      [LOGGED, INVENTED],
      'sent at another time it is another',
    );
  },
);

reconciling(
  'an answer on record that the receiver did not give is found, and another answer than it gave',
  async () => {
    const { delivery } = ids.get(0)!;
    assert.equal(await wrongAfter([], { journal: { arrivals: without(0) } }), {
      [KAFKA]: '4 + 1 + 0; missing 1: 0',
      [INVENTED]: `1: ${delivery}`,
    });
    const noted = (afterMs: number) => ({
      journal: { arrivals: [...without(0), again(0, { atMs: AT + TOOK_MS + afterMs })] },
    });
    assert.equal(await wrongAfter([], noted(50)), {}, 'clocks may be set');
    assert.equal(Object.keys(await wrongAfter([], noted(60_000))), [LOGGED, INVENTED]);
    const failed = [
      `update delivery_attempts set http_status = 500, error_class = 'status' where event_delivery_id = '${delivery}'`,
      RECOUNT,
    ];
    assert.equal(Object.keys(await wrongAfter(failed)), [INVENTED]);
  },
);

reconciling(
  'a repeat after a success needs a cause: its delivery was taken from an agent, or the answer was lost',
  async () => {
    const { delivery } = ids.get(0)!;
    const twice = [...arrivals, again(0, { atMs: AT + 20_000, sentAtSeconds: AT / 1000 + 19 })];
    const secondAttempt = `insert into delivery_attempts select (jsonb_populate_record(a, jsonb_build_object('id', gen_random_uuid(), 'requested_at', a.requested_at + interval '19.9 seconds'))).*
    from delivery_attempts a where event_delivery_id = '${delivery}'`;
    const wrong = (...statements: string[]) =>
      wrongAfter([secondAttempt, ...statements, RECOUNT], { journal: { arrivals: twice } });
    assert.equal(await wrong(), {
      [REPEATS]: `1; without a cause: 1: ${delivery} (2 times, 1 allowed)`,
    });
    assert.equal(
      await wrong(`update event_deliveries set recovered = 1 where id = '${delivery}'`),
      {},
    );
    const lost = `update delivery_attempts set http_status = null, error_class = 'timeout'
    where event_delivery_id = '${delivery}' and requested_at = (select min(requested_at) from delivery_attempts where event_delivery_id = '${delivery}')`;
    assert.equal(await wrong(lost), {});
  },
);

reconciling(
  'a request without an attempt of its own is missed, also while connections are being lost',
  async () => {
    const faults = [{ kind: 'cut', target: 'link to receiver', atMs: AT, untilMs: AT + 15 }];
    assert.ok(
      LOGGED in
        (await wrongAfter([], {
          journal: { arrivals: [...arrivals, again(0, { atMs: AT + 20 })], faults },
        })),
    );
  },
);

reconciling(
  'a delivery that no living agent holds is past its lease, and one of a living agent is not',
  async () => {
    const held = (agent: string) => [
      `insert into agents (id, name, expires_at) overriding system value values (7, 'living', now() + interval '5 s'), (8, 'dead', now() - interval '1 s')`,
      `delete from delivery_attempts where event_delivery_id = '${ids.get(0)!.delivery}'`,
      `update event_deliveries set status = 'processing', claimed_by = ${agent} where id = '${ids.get(0)!.delivery}'`,
      RECOUNT,
    ];
    const wrong = (agent: string) => wrongAfter(held(agent), { journal: { arrivals: without(0) } });
    assert.equal(await wrong('7'), {});
    assert.equal(await wrong('8'), { [LEASE]: `1: ${ids.get(0)!.delivery}` });
    assert.equal(await wrong('9'), { [LEASE]: `1: ${ids.get(0)!.delivery}` });
  },
);

reconciling(
  'an event that stays pending is forgotten, and so is a delivery that stays due',
  async () => {
    const { event, delivery } = ids.get(0)!;
    const unattempted = `delete from delivery_attempts where event_delivery_id = '${delivery}'`;
    const pending = [
      unattempted,
      `delete from event_deliveries where id = '${delivery}'`,
      `update events set status = 'pending', outcome = null, accepted_at = now() - interval '1 minute' where id = '${event}'`,
      RECOUNT,
    ];
    assert.equal(await wrongAfter(pending, { journal: { arrivals: without(0) } }), {
      [UNROUTED]: `1: ${event}`,
    });
    const due = [
      unattempted,
      `update event_deliveries set status = 'scheduled', next_attempt_at = now() - interval '1 minute' where id = '${delivery}'`,
      RECOUNT,
    ];
    assert.equal(await wrongAfter(due, { journal: { arrivals: without(0) } }), {
      [OVERDUE]: `1: ${delivery}`,
    });
  },
);

reconciling(
  'a delivery that is held for an endpoint that is not paused is left behind',
  async () => {
    const { delivery } = ids.get(0)!;
    const held = [
      `delete from delivery_attempts where event_delivery_id = '${delivery}'`,
      `update event_deliveries set status = 'scheduled', next_attempt_at = 'infinity' where id = '${delivery}'`,
      RECOUNT,
    ];
    assert.equal(await wrongAfter(held, { journal: { arrivals: without(0) } }), {
      [LEFT]: `1: ${delivery}`,
    });
  },
);

reconciling(
  'an offset that is ahead of Postgres is found, and messages that wait in the queue',
  async () => {
    const ahead = offsets.kafka.map((one) => ({
      ...one,
      committed: one.partition === 1 ? 5 : 3,
      end: 5,
    }));
    assert.equal(await wrongAfter([], { brokers: { kafka: ahead } }), {
      [OFFSETS]: '6; not in Postgres 2: 1/3, 1/4',
    });
    assert.equal(
      await wrongAfter([], { brokers: { kafka: ahead.map((one) => ({ ...one, committed: -1 })) } }),
      {},
    );
    assert.equal(await wrongAfter([], { brokers: { sqs: { ready: 2, inFlight: 0 } } }), {
      [QUEUE]: '2 + 0',
    });
  },
);

reconciling('a count that differs from the rows is found, be it folded or not', async () => {
  const unfold = `insert into count_changes select project_id, array[null::uuid], array[source_id], array[null::text], array['failed'], array[null::smallint], array[3]
    from events limit 1`;
  assert.equal(await wrongAfter([unfold]), { [COUNTS]: '1: events failed: 3 counted, 0 there' });
  const counted = [
    RECOUNT,
    `update event_delivery_counts set n = n - 1`,
    `update delivery_attempt_counts set n = n + 1`,
  ];
  assert.equal(await wrongAfter(counted), {
    [COUNTS]: '2: attempts success 200: 9 counted, 8 there, deliveries success: 7 counted, 8 there',
  });
});

reconciling('the table has a row for each line, aligned, and ends with the verdict', async () => {
  const balancedRows = reportTable(await booksAfter([]))
    .trimEnd()
    .split('\n');
  assert.is(balancedRows.at(-1), 'The report balances.');
  const rows = reportTable(await booksAfter(forget(8)))
    .trimEnd()
    .split('\n');
  assert.is(rows.length, balancedRows.length);
  assert.match(rows.at(-1)!, /^The report does not balance: \d of \d+ lines are wrong\.$/);
  assert.is(
    rows.filter((row) => row.startsWith('WRONG  ')).length,
    Number(/\d/.exec(rows.at(-1)!)![0]),
  );
  const column = rows[0]!.indexOf('expected');
  assert.ok(rows.slice(1, -2).every((row) => row[column - 1] === ' ' && row[column] !== ' '));
});

reconciling.run();
