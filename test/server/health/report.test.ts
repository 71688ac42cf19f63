import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { countRequests } from '#agent/flow-control/breaker-record';
import { FINDINGS, type FindingCode } from '#server/explain/table';
import { readHealthReport, type HealthReport } from '#server/explain/report';
import { healthProbe } from '#server/health/healthz';
import { insertSource, pauseSourceByPerson } from '#store/config/sources';
import { registerAgent } from '#store/deliveries/agents';
import { encodeValue } from '#store/kv/versions';
import type { Kv } from '#store/kv/kv';
import { openKv } from '#store/kv/redis-kv';
import { writeSourceState } from '#store/kv/source-states';
import { openDatabase, type Database } from '#store/postgres/database';
import type { ReplicaState } from '#store/postgres/replicas';
import { quarantineMessages } from '#store/quarantine/messages';
import type { Shard } from '#store/shards/open-shards';
import { DEFAULT_SHARD } from '#store/shards/shards';
import { makeEndpoint } from '../../store/made.js';
import { quarantinedMessage } from '../../store/batches.js';
import { connectionOf } from '../../support/database.js';
import { freePort } from '../../support/ports.js';
import { activated, makeProject, startApi, type Api } from '../api.js';
import { SECOND } from '../../support/shard.js';

const report = suite('server/health/report');

let api: Api;
let agentId: number;
let plugins: Awaited<ReturnType<typeof activated>>;
let awayKv: Kv;
let awayDatabase: Database;

report.before(async () => {
  api = await startApi();
  plugins = await activated();
  agentId = await registerAgent(api.db.pool, 'one', 3_600_000);
  const port = await freePort();
  awayKv = openKv({ type: 'redis', scheme: 'redis', host: '127.0.0.1', port }, () => undefined);
  awayDatabase = openDatabase(
    { ...connectionOf(api.db.url), scheme: 'postgres' as const, port },
    { poolSize: 1, name: 'away' },
  );
});
report.after(async () => {
  await awayKv.close();
  await awayDatabase.close();
  await api.close();
});

/** A project that is in use, and what the server would read its health from. */
interface Place {
  readonly id: string;
  database: Database;
  /** The shard of the project, if it is another one than that of `database`. */
  shard?: Shard;
  kv: Kv;
  replicas: readonly ReplicaState[];
  /** Undoes what a fault has changed beyond the project. */
  undo: () => Promise<unknown>;
}

const rows = (text: string, values: unknown[]) => api.db.pool.query(text, values);

async function inUse(): Promise<Place> {
  const { id } = await makeProject(api);
  await rows(
    `insert into event_counts (project_id, source, status, n) values ($1, 'api', 'processed', 3)`,
    [id],
  );
  return { id, database: api.db, kv: api.kv, replicas: [], undo: async () => undefined };
}

function shardOf(name: string, database: Database): Shard {
  const planes = { shard: name, control: database.pool, data: database.pool };
  return { name, planes, database, settings: api.config.database };
}

const bothShard = (database: Database) => shardOf(DEFAULT_SHARD, database);

async function reported(place: Place): Promise<HealthReport> {
  const { database, kv, replicas: states } = place;
  const { config } = api;
  const probed = { config, database, kv, plugins, billing: undefined, replicas: { states } };
  const { shard = bothShard(database) } = place;
  const project = { id: place.id };
  const planes = { shard: shard.name, control: database.pool, data: shard.database.pool };
  return readHealthReport({
    ...{ database, planes, kv, project },
    probeHealth: healthProbe({ ...probed, shards: { all: [shard] } }),
  });
}

async function deliver(id: string, endpointId: string, count: number, next: string): Promise<void> {
  await rows(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, next_attempt_at, reason)
     select $1, gen_random_uuid(), now(), gen_random_uuid(), $2, 'scheduled', ${next}, 'It answered 500.' from generate_series(1, $3)`,
    [id, endpointId, count],
  );
}

async function requested(
  id: string,
  name: string,
  success: number,
  failure: number,
): Promise<void> {
  const endpoint = await makeEndpoint(api.db, id, { name });
  await rows(
    `insert into activity (project_id, endpoint_id, at, kind, status, n)
     select $1, $2, date_bin('10 minutes', now(), 'epoch'), 'attempt', status, n from (values ('success', $3::int), ('failure', $4::int)) v(status, n)`,
    [id, endpoint.id, success, failure],
  );
}

const source = ({ id }: Place, name: string) =>
  insertSource(api.db.knex, id, {
    name,
    type: 'pub_sub',
    pub_sub: { type: 'kafka', kafka: {} },
    body_function: null,
    is_disabled: false,
  });

const minutesAgo = (minutes: number) => `now() - interval '${minutes} minutes'`;

interface Fault {
  readonly code: FindingCode;
  /** Opens the report if this is the worst finding. */
  readonly verdict: string;
  readonly sentence: RegExp;
  readonly page: RegExp;
  /** Faults that cannot be seen while this one lasts. */
  readonly hides?: readonly string[];
  readonly inject: (place: Place) => Promise<unknown>;
}

/** A fault of each kind, in order of harm: beside another one, the upper is told first. */
const faults: readonly Fault[] = [
  {
    code: 'postgres_away',
    verdict: 'Postgres does not answer',
    sentence:
      /^Postgres has not answered since \d\d:\d\d UTC: nothing is accepted or delivered, and other states are unknown\.$/,
    page: /^\/instance$/,
    inject: async (place) => (place.database = awayDatabase),
  },
  {
    code: 'postgres_read_only',
    verdict: 'Postgres accepts no writes',
    sentence:
      /^Postgres has accepted no writes since \d\d:\d\d UTC: nothing is accepted or delivered\.$/,
    page: /^\/instance$/,
    async inject(place) {
      const { undo } = place;
      const settings = { ...connectionOf(api.db.url), scheme: 'postgres' as const };
      await rows(`alter database ${settings.database} set default_transaction_read_only = on`, []);
      const database = openDatabase(settings, { poolSize: 2, name: 'read-only' });
      place.database = database;
      place.undo = async () => {
        await rows(`alter database ${settings.database} reset default_transaction_read_only`, []);
        await database.close();
        await undo();
      };
    },
  },
  {
    code: 'shard_away',
    verdict: 'The shard of the project cannot be used',
    sentence:
      /^The shard second has not been usable since \d\d:\d\d UTC: events of this project on it are not accepted, shown or delivered\.$/,
    page: /^\/instance$/,
    inject: async (place) => (place.shard = shardOf(SECOND, awayDatabase)),
  },
  {
    code: 'migrations_pending',
    verdict: 'The database lacks migrations',
    sentence: /^The database lacks migrations: .*gateway migrate up/,
    page: /^\/instance$/,
    async inject(place) {
      const { undo } = place;
      const gone = await rows(
        'delete from gateway_migrations where id = (select max(id) from gateway_migrations) returning *',
        [],
      );
      const { id, name, batch, migration_time } = gone.rows[0] as Record<string, unknown>;
      place.undo = async () => {
        await rows(
          'insert into gateway_migrations (id, name, batch, migration_time) values ($1, $2, $3, $4)',
          [id, name, batch, migration_time],
        );
        await undo();
      };
    },
  },
  {
    code: 'agents_gone',
    verdict: 'No agent is running',
    sentence: /^No agent is running since \d\d:\d\d UTC: nothing is routed or delivered\.$/,
    page: /^\/instance$/,
    hides: ['sources_failing', 'sources_unknown'],
    async inject(place) {
      const { undo } = place;
      await rows(`update agents set expires_at = ${minutesAgo(5)}`, []);
      place.undo = async () => {
        await rows(`update agents set expires_at = now() + interval '1 hour'`, []);
        await undo();
      };
    },
  },
  {
    code: 'events_waiting',
    verdict: '1 event waits to be routed',
    sentence: /^1 event waits to be routed, the oldest for 3 min\.$/,
    page: /^\/events\?status=pending$/,
    async inject({ id }) {
      await api.call('POST', `/projects/${id}/events`, { event_type: 'a', data: {} });
      await rows(
        `update events set accepted_at = ${minutesAgo(3)}, status = 'pending', outcome = null where project_id = $1`,
        [id],
      );
    },
  },
  {
    code: 'deliveries_late',
    verdict: '2 deliveries are late',
    sentence: /^2 deliveries are due and not sent, the oldest for 4 min\.$/,
    page: /^\/deliveries\?status=waiting$/,
    inject: async ({ id }) =>
      deliver(id, (await makeEndpoint(api.db, id, { name: 'calm' })).id, 2, minutesAgo(4)),
  },
  {
    code: 'breakers_open',
    verdict: '1 endpoint is failing',
    sentence:
      /^Deliveries to billing have failed since \d\d:\d\d UTC: 200 waiting, breaker open until \d\d:\d\d UTC\.$/,
    page: /^\/endpoints\/[0-9a-f-]{36}$/,
    async inject({ id }) {
      const { id: endpointId } = await makeEndpoint(api.db, id, { name: 'billing' });
      await deliver(id, endpointId, 200, `now() + interval '1 minute'`);
      const policy = {
        threshold: 0.5,
        minimumRequests: 10,
        windowMs: 60_000,
        openMs: 60_000,
        openMaxMs: 600_000,
      };
      const record = countRequests(
        undefined,
        { projectId: id, requests: 10, failures: 10 },
        policy,
        Date.now(),
      );
      assert.is(record.state, 'open');
      await api.kv
        .map('breakers')
        .change([{ field: endpointId, from: undefined, to: encodeValue('breaker', record) }]);
    },
  },
  {
    code: 'endpoints_inactive',
    verdict: '1 endpoint is inactive',
    sentence: /^crm has been inactive since \d\d:\d\d UTC, and gets no events\. It answered 410\.$/,
    page: /^\/endpoints\/[0-9a-f-]{36}$/,
    async inject({ id }) {
      const endpoint = await makeEndpoint(api.db, id, { name: 'crm' });
      await rows(
        `update endpoints set status = 'inactive', status_reason = 'It answered 410.' where id = $1`,
        [endpoint.id],
      );
    },
  },
  {
    code: 'endpoints_failing',
    verdict: '1 endpoint is failing',
    sentence: /^Requests to shop fail: 30 of 32 since \d\d:\d\d UTC\.$/,
    page: /^\/endpoints\/[0-9a-f-]{36}$/,
    inject: ({ id }) => requested(id, 'shop', 2, 30),
  },
  {
    code: 'sources_failing',
    verdict: '1 source cannot be read',
    sentence:
      /^The source orders has been failing since \d\d:\d\d UTC\. The broker refused the password\.$/,
    page: /^\/sources\/[0-9a-f-]{36}$/,
    async inject(place) {
      const { id: sourceId } = await source(place, 'orders');
      await writeSourceState(
        api.kv,
        { projectId: place.id, sourceId, agentId },
        {
          state: 'failing',
          reason: 'The broker refused the password.',
          sinceMs: Date.now() - 60_000,
          messages: null,
        },
      );
    },
  },
  {
    code: 'sources_unread',
    verdict: 'No agent reads sources',
    sentence: /^No agent reads .*returns.*: messages wait with the broker\.$/,
    page: /^\/sources/,
    hides: ['sources_failing', 'sources_unknown'],
    async inject(place) {
      const { undo } = place;
      await source(place, 'returns');
      await rows('update agents set reads_sources = false', []);
      place.undo = async () => {
        await rows('update agents set reads_sources = true', []);
        await undo();
      };
    },
  },
  {
    code: 'kv_away',
    verdict: 'Redis does not answer',
    sentence:
      /^Redis has not answered since \d\d:\d\d UTC: the states of circuit breakers.* are unknown\.$/,
    page: /^\/instance$/,
    hides: ['breakers_open', 'sources_failing', 'sources_unknown'],
    inject: async (place) => (place.kv = awayKv),
  },
  {
    code: 'sources_unknown',
    verdict: 'The state of 1 source is unknown',
    sentence: /^Whether stock can be read is unknown: no agent has reported it for 30 s\.$/,
    page: /^\/sources\/[0-9a-f-]{36}$/,
    inject: (place) => source(place, 'stock'),
  },
  {
    code: 'endpoints_failing_partly',
    verdict: 'Some requests to 1 endpoint fail',
    sentence: /^Some requests to mail fail: 3 of 32 since \d\d:\d\d UTC\.$/,
    page: /^\/endpoints\/[0-9a-f-]{36}$/,
    inject: ({ id }) => requested(id, 'mail', 29, 3),
  },
  {
    code: 'replicas_behind',
    verdict: 'A read replica is away or behind',
    sentence:
      /^A read replica has been left out since \d\d:\d\d UTC: db2:5432 is more than 5 s behind the primary; reads go elsewhere\.$/,
    page: /^\/instance$/,
    inject: (place) => {
      const problem = 'db2:5432 is more than 5 s behind the primary';
      place.replicas = [{ address: 'db2:5432', lagSeconds: 7, problem }];
      return Promise.resolve();
    },
  },
  {
    code: 'project_moving',
    verdict: 'The project is being moved to another shard',
    sentence:
      /^Events from before 2026-11-20 10:00 UTC are still on the shard default \(7 left\), are not listed or counted, and their deliveries wait\. The last try failed: away$/,
    page: /^\/instance$/,
    inject: ({ id }) =>
      rows(
        `insert into project_moves (project_id, from_shard, to_shard, phase, events_before, events_copied, copied_to, error)
         values ($1, 'default', 'other', 'history', 10, 3, '2026-11-20 10:00Z', 'away')`,
        [id],
      ),
  },
  {
    code: 'sources_paused',
    verdict: '1 source is paused',
    sentence:
      /^The source stocktake has been paused since \d\d:\d\d UTC: messages wait with the broker\.$/,
    page: /^\/sources\/[0-9a-f-]{36}$/,
    async inject(place) {
      const { id } = await source(place, 'stocktake');
      await pauseSourceByPerson(api.db.knex, place.id, id, 'a person');
    },
  },
  {
    code: 'keys_parked',
    verdict: '1 ordered key is parked',
    sentence:
      /^A delivery at ordered failed for good, and those behind it with the same order key wait since \d\d:\d\d UTC: release, skip or discard it\.$/,
    page: /^\/endpoints\/[0-9a-f-]{36}$/,
    async inject({ id }) {
      const endpoint = await makeEndpoint(api.db, id, { name: 'ordered' });
      await rows(
        `insert into ordered_keys (project_id, endpoint_id, order_key, delivery_id, occurred_at, parked_at)
         values ($1, $2, gen_random_uuid(), gen_random_uuid(), now(), now())`,
        [id, endpoint.id],
      );
    },
  },
  {
    code: 'messages_quarantined',
    verdict: '1 message is in quarantine',
    sentence: /^1 message could not be accepted: in quarantine since \d\d:\d\d UTC\.$/,
    page: /^\/quarantine$/,
    inject: ({ id }) => quarantineMessages(api.db.pool, [quarantinedMessage({ projectId: id })]),
  },
  {
    code: 'deliveries_held',
    verdict: '1 delivery is held',
    sentence: /^1 delivery is held for endpoints paused since \d\d:\d\d UTC\.$/,
    page: /^\/endpoints\?status=paused$/,
    async inject({ id }) {
      const endpoint = await makeEndpoint(api.db, id, { name: 'paused' });
      await rows(`update endpoints set status = 'paused' where id = $1`, [endpoint.id]);
      await deliver(id, endpoint.id, 1, `'infinity'`);
    },
  },
  {
    code: 'archive_failing',
    verdict: 'The archive cannot be written',
    sentence: /^The archive has not been writable since \d\d:\d\d UTC: expired events are kept/,
    page: /^\/instance$/,
    async inject(place) {
      await rows(`insert into archive_failure (reason) values ('away')`, []);
      place.undo = () => rows('delete from archive_failure', []);
    },
  },
];

/** Injects faults, the outermost last, because the others need Postgres and KV. */
async function withFaults(injected: readonly Fault[]): Promise<HealthReport> {
  const place = await inUse();
  try {
    for (const { inject } of injected.toReversed()) await inject(place);
    return await reported(place);
  } finally {
    await place.undo();
  }
}

report('a project in use with no fault is healthy, and one without traffic says so', async () => {
  const place = await inUse();
  const { state, sentence, findings } = await reported(place);
  assert.equal(
    [state, sentence, findings],
    ['ok', 'Healthy: messages are accepted, routed and delivered.', []],
  );
  const { id } = await makeProject(api);
  const idle = await reported({ ...place, id });
  assert.equal([idle.state, idle.sentence], ['idle', 'No traffic yet.']);
});

report('the faults are those that can be found, in order of harm', () => {
  assert.equal(
    faults.map(({ code }) => code),
    Object.keys(FINDINGS),
  );
});

for (const fault of faults)
  report(`${fault.code} is found, with its sentence, age and page`, async () => {
    const { findings, state, sentence: verdict } = await withFaults([fault]);
    assert.is(verdict, `${fault.verdict}.`);
    assert.equal(
      findings.map(({ code }) => code),
      [fault.code],
    );
    const { severity, sentence, since, count, page, action } = findings[0]!;
    assert.match(sentence, fault.sentence);
    assert.match(page, fault.page);
    assert.is(state, severity);
    assert.ok(count > 0 && action.length > 0);
    if (fault.code !== 'sources_unknown') assert.ok(since! <= new Date());
  });

/** Findings of components, which need no statement on the shard. */
const SHOWN_WITHOUT_SHARD = ['migrations_pending', 'replicas_behind'];

/** Without its events, all else that is wrong in a project is unknown. */
function hiddenBy({ code, hides }: Fault): readonly string[] | undefined {
  const codes = faults.map((it) => it.code);
  if (code === 'postgres_away') return codes;
  return code === 'shard_away' ? codes.filter((it) => !SHOWN_WITHOUT_SHARD.includes(it)) : hides;
}

report('of each two faults the more harmful one is told first', async () => {
  for (const [k, upper] of faults.entries())
    for (const lower of faults.slice(k + 1)) {
      const hides = hiddenBy(upper);
      const isHidden = hides?.includes(lower.code) && lower.code !== 'kv_away';
      const isUpperHidden = lower.hides?.includes(upper.code);
      const { findings, sentence: verdict } = await withFaults([upper, lower]);
      const expected = [...(isUpperHidden ? [] : [upper.code]), ...(isHidden ? [] : [lower.code])];
      const codes = findings.map(({ code }) => code);
      const pair = `${upper.code} and ${lower.code}: ${codes.join(', ')}`;
      assert.is(codes[0], expected[0], pair);
      for (const code of expected) assert.ok(codes.includes(code), pair);
      const rest = findings.length - 1;
      const more = rest === 0 ? '' : `, and ${rest} more problem${rest === 1 ? '' : 's'}`;
      const start = isUpperHidden ? lower.verdict : upper.verdict;
      assert.is(verdict, `${start}${more}.`, pair);
      assert.match(findings[0]!.sentence, isUpperHidden ? lower.sentence : upper.sentence, pair);
    }
});

report('what cannot be seen is not healthy', async () => {
  const place = await inUse();
  place.kv = awayKv;
  await source(place, 'orders');
  const { state, findings } = await reported(place);
  assert.is(state, 'unknown');
  assert.match(findings[0]!.sentence, 'and of 1 source are unknown.');
});

report('of many endpoints the worst are named and the others counted', async () => {
  const place = await inUse();
  for (let n = 0; n < 14; n++) await requested(place.id, `e${n}`, 0, 100 - n);
  const { findings, failingEndpoints } = await reported(place);
  assert.match(findings[0]!.sentence, /^Requests to e0, e1, e2 and 11 more fail: /);
  assert.equal(
    [findings[0]!.count, findings[0]!.page, failingEndpoints.length],
    [14, '/endpoints', 10],
  );
});

report('the API answers with the report of one project', async () => {
  const place = await inUse();
  await requested(place.id, 'shop', 1, 2);
  const { status, body } = await api.call('GET', `/projects/${place.id}/health`);
  assert.equal([status, body.message, body.data.state], [200, '1 endpoint is failing.', 'bad']);
  assert.equal(
    body.data.findings.map(({ code }: { code: string }) => code),
    ['endpoints_failing'],
  );
  const [{ name, state, requests, waiting_deliveries: waiting }] = body.data.failing_endpoints;
  assert.equal(
    [name, state, requests, waiting],
    ['shop', 'failing', { success: 1, failure: 2 }, 0],
  );
});

report('an object of the archive that cannot be read is told to its project alone', async () => {
  const [place, other] = [await inUse(), await inUse()];
  const key = `project=${place.id}/day=2026-01-31/_manifest.json`;
  await rows('insert into archive_failure (reason) values ($1)', [
    `project=${other.id}/day=2026-01-31/_manifest.json in the archive /srv cannot be read\n${key} in the archive /srv cannot be read`,
  ]);
  try {
    const [finding] = (await reported(place)).findings;
    assert.match(finding!.sentence, /^Expired events of this project have not been archived since/);
    assert.match(finding!.sentence, `${key} in the archive cannot be read. The log`);
    assert.equal((await reported(await inUse())).findings, []);
  } finally {
    await rows('delete from archive_failure', []);
    await place.undo();
    await other.undo();
  }
});

report.run();
