// deadline: 240 s, long
import crypto from 'node:crypto';
import os from 'node:os';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealer } from '#core/crypto/sealing';
import { newId } from '#core/events/ids';
import { insertEndpoint } from '#store/config/endpoints';
import type { Database } from '#store/postgres/database';
import { changeUntold, makeDelivery, makeEvents, makeProject } from '../store/made.js';
import { migratedDatabase } from '../store/migrated.js';
import { connectionOf } from '../support/database.js';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { gateway, runGateway } from '../support/gateway.js';
import { freePort } from '../support/ports.js';
import { until } from '../support/until.js';

const agentFlags = suite('e2e/agent-flags');

/**
 * The documented flags of `gateway agent`, without the global ones. e2e/notifications tests
 * `--smtp-*`.
 */
const PROMISED = ['--consumers', '--interval', '--max-response-size', '--mode', '--port'] as const;
const tested = new Set<string>();

/** Declares a test of flags; flags share starts of an agent where possible. */
function flag(
  names: readonly (typeof PROMISED)[number][],
  behaviour: string,
  test: () => Promise<void>,
): void {
  for (const name of names) tested.add(name);
  agentFlags(`${names.join(' ')}: ${behaviour}`, test);
}

const encryptionKey = crypto.randomBytes(32).toString('base64');
const db = await migratedDatabase();
agentFlags.after(() => db.close());

const settings = {
  encryption_key: encryptionKey,
  database: connectionOf(db.url),
  kv: { type: 'in-memory' },
  delivery: { allowed_networks: ['127.0.0.0/8'] },
  source: { allowed_networks: ['127.0.0.0/8'] },
};

/** The place of the port setting. The flag overrides the environment, which overrides the file. */
type PortFrom = 'flag' | 'environment' | 'file';

/** Runs a test with an agent with these flags, reached at the effective port. */
async function withAgent(
  {
    flags = [],
    config = {},
    port: from = 'flag',
  }: { flags?: readonly string[]; config?: object; port?: PortFrom },
  test: () => Promise<void>,
): Promise<void> {
  const [flagged, environment, file] = [await freePort(), await freePort(), await freePort()];
  const agent = gateway(['agent', ...flags, '--port', String(from === 'flag' ? flagged : 0)], {
    config: { ...settings, server: { http: { bind: '127.0.0.1', agent_port: file } }, ...config },
    env: from === 'file' ? {} : { AGENT_PORT: String(environment) },
  });
  try {
    await agent.healthy({ flag: flagged, environment, file }[from]);
    await test();
  } finally {
    await agent.terminate();
  }
}

interface Scene {
  readonly projectId: string;
  readonly endpointId: string;
  readonly receiver: Endpoint;
  /**
   * Inserts due deliveries of new events, to the endpoints in rotation, and notifies the agents.
   */
  due(count: number, status?: 'scheduled' | 'retry'): Promise<string[]>;
  count(status: string): Promise<number>;
}

/** Runs a test with a new project, a receiver and `endpoints` endpoints on it. */
async function scene(test: (it: Scene) => Promise<void>, endpoints = 1): Promise<void> {
  const receiver = await endpoint();
  const { id: projectId } = await makeProject(db);
  const endpointIds: string[] = [];
  while (endpointIds.length < endpoints)
    endpointIds.push((await insertEndpoint(db.knex, projectId, endpointFields(receiver.url))).id);
  try {
    await test({
      projectId,
      endpointId: endpointIds[0]!,
      receiver,
      due: async (count, status = 'scheduled') =>
        due(db, { projectId, endpointIds, status, count }),
      count: async (status) =>
        (
          await db.rows(
            'select from event_deliveries where project_id = $1 and status = $2::event_delivery_status',
            [projectId, status],
          )
        ).length,
    });
  } finally {
    await receiver.close();
  }
}

function endpointFields(url: string) {
  const id = newId();
  const value = sealer(encryptionKey).seal(`whsec_${crypto.randomBytes(24).toString('base64')}`, [
    'endpoints',
    id,
    'secrets',
  ]);
  const secrets = [{ id: newId(), value, created_at: new Date().toISOString(), expires_at: null }];
  const unset = { owner_id: null, authentication: null, concurrency: null, strategy: null };
  return { id, name: 'shop', url, description: '', secrets, timeout_ms: 30_000, ...unset };
}

let times = 0;

async function due(
  to: Database,
  {
    projectId,
    endpointIds,
    status,
    count,
  }: { projectId: string; endpointIds: readonly string[]; status: string; count: number },
): Promise<string[]> {
  // Ids are derived from the time, so every event has another time.
  const events = await makeEvents(
    to,
    projectId,
    Array.from({ length: count }, () => ({ atMs: Date.now() - ++times })),
  );
  const ids: string[] = [];
  for (const [k, eventId] of events.entries()) {
    const endpointId = endpointIds[k % endpointIds.length]!;
    ids.push(
      await makeDelivery(to, {
        projectId,
        eventId,
        endpointId,
        status,
        attempts: status === 'retry' ? 1 : 0,
      }),
    );
  }
  await to.pool.query(`select pg_notify('gateway_due', $1)`, [projectId]);
  return ids;
}

/** Holds a receiver's requests until released, and records the peak concurrency. */
function holding(receiver: Endpoint): {
  readonly peak: number;
  readonly arrived: number;
  letGo(): void;
} {
  const held: (() => void)[] = [];
  let [peak, arrived] = [0, 0];
  receiver.answer(async () => {
    arrived++;
    await new Promise<void>((resolve) => {
      peak = Math.max(peak, held.push(resolve));
    });
    return {};
  });
  return {
    get peak() {
      return peak;
    },
    get arrived() {
      return arrived;
    },
    letGo: () => held.shift()?.(),
  };
}

for (const [flags, poolSize, port, expected, behaviour] of [
  [
    ['--consumers', '2', '--mode', 'default'],
    7,
    'flag',
    2,
    'no more requests than that are under way; default takes both sorts; the port of the flag wins',
  ],
  [
    ['--consumers=-1'],
    3,
    'environment',
    3,
    'a negative number leaves it to the configuration; without --mode both sorts are taken; port 0 counts as not given',
  ],
  [
    [],
    4,
    'file',
    4,
    'without it the configuration decides, and so it does with the port where the environment names none',
  ],
] as const) {
  // Endpoints with recorded successes: a single one, or unknown ones, do not get all consumers.
  const known = 6;
  flag(['--consumers', '--mode', '--port'], behaviour, () =>
    scene(async (it) => {
      await withAgent({ flags, port, config: { consumer_pool_size: poolSize } }, async () => {
        await it.due(known);
        await until(
          'every endpoint to be known',
          async () => (await it.count('success')) === known,
        );
        const requests = holding(it.receiver);
        await it.due(6);
        await it.due(6, 'retry');
        // The agent holds all twelve, and the endpoints release one once the expected number has
        // arrived.
        await until('all to be claimed', async () => (await it.count('processing')) === 12);
        for (let gone = 0; gone < 12; gone++) {
          await until(
            `request ${gone + expected}`,
            () => requests.arrived >= Math.min(12, gone + expected),
          );
          requests.letGo();
        }
        assert.is(requests.peak, expected);
        await until('all to be recorded', async () => (await it.count('success')) === known + 12);
      });
    }, known),
  );
}

flag(
  ['--max-response-size'],
  'so many kilobytes of an answer are stored, and those of the configuration, which the server shares, without it',
  () =>
    scene(async (it) => {
      it.receiver.answer({ status: 200, body: 'x'.repeat(5_000) });
      const stored = async () => {
        const [delivery] = await it.due(1);
        const attempts = () =>
          db.rows<{ bytes: number }>(
            'select length(response_body) as bytes from delivery_attempts where event_delivery_id = $1',
            [delivery],
          );
        await until('the attempt to be recorded', async () => (await attempts()).length === 1);
        return (await attempts())[0]!.bytes;
      };
      const config = { max_response_size: 2 };
      await withAgent({ config }, async () => assert.is(await stored(), 2048));
      await withAgent({ config, flags: ['--max-response-size', '1'] }, async () =>
        assert.is(await stored(), 1024),
      );
    }),
);

flag(['--consumers'], '0 is applied, and means as many as the machine suggests', async () => {
  const port = await freePort();
  const config = { ...settings, consumer_pool_size: 3, server: { http: { bind: '127.0.0.1' } } };
  const agent = gateway(['agent', '--consumers', '0', '--port', String(port)], { config });
  try {
    await agent.healthy(port);
    const { consumers } = JSON.parse(await agent.line('The agent is ready.')) as {
      consumers: number;
    };
    assert.is(consumers, 250 * os.availableParallelism());
  } finally {
    await agent.terminate();
  }
});

/** Changes an endpoint's URL as if the notification were lost. */
async function move(endpointId: string, url: string): Promise<void> {
  await db.rows('alter table endpoints disable trigger config_updated');
  await db.rows('update endpoints set url = $1 where id = $2', [url, endpointId]);
  await db.rows('alter table endpoints enable trigger config_updated');
  await changeUntold(db);
}

flag(
  ['--interval', '--mode'],
  'a change that nobody told of is seen after so many seconds, and not before; events takes first attempts, retry later ones, and neither those of the other',
  () =>
    scene(async (it) => {
      const moved = await endpoint();
      /** Deliveries outside the mode remain, although later ones are delivered. */
      const leftBehind = async (status: 'scheduled' | 'retry') => {
        assert.is(await it.count(status), 2);
        await db.rows(
          `update event_deliveries set status = 'discarded', next_attempt_at = null where project_id = $1 and status = $2::event_delivery_status`,
          [it.projectId, status],
        );
      };
      try {
        await withAgent({ flags: ['--interval', '3600', '--mode', 'events'] }, async () => {
          await move(it.endpointId, moved.url);
          await it.due(2, 'retry');
          for (let k = 1; k <= 2; k++) {
            await it.due(1, 'scheduled');
            await it.receiver.received(k);
          }
          assert.equal([it.receiver.requests.length, moved.requests.length], [2, 0]);
          await leftBehind('retry');
        });
        await withAgent({ flags: ['--interval', '1', '--mode', 'retry'] }, async () => {
          await it.due(2, 'scheduled');
          await it.due(1, 'retry');
          await moved.received(1);
          await move(it.endpointId, it.receiver.url);
          let sent = 1;
          await until('a delivery to where the endpoint is now', async () => {
            await it.due(1, 'retry');
            sent++;
            await until(
              'it to be delivered',
              () => it.receiver.requests.length + moved.requests.length === 2 + sent,
            );
            return it.receiver.requests.length > 2;
          });
          await leftBehind('scheduled');
        });
      } finally {
        await moved.close();
      }
    }),
);

flag(['--interval'], 'it is 10 seconds when nobody says otherwise', async () => {
  const { stdout } = await runGateway(['config']);
  assert.is(
    (JSON.parse(stdout) as { agent: { interval_seconds: number } }).agent.interval_seconds,
    10,
  );
});

flag(['--mode'], 'another word is wrong use, told with the list', async () => {
  const { code, stderr } = await runGateway(['agent', '--mode', 'event'], { config: settings });
  assert.is(code, 2);
  assert.match(
    stderr,
    /agent\.mode must be one of events, retry, default, not "event" \(from --mode\); did you mean events\?/,
  );
});

agentFlags('every promised flag is tested, and is in the help', async () => {
  assert.equal([...tested].sort(), [...PROMISED].sort());
  const { stdout } = await runGateway(['agent', '--help']);
  for (const name of PROMISED) assert.match(stdout, new RegExp(`${name}\\b`));
});

agentFlags.run();
