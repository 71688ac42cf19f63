import { explainDatabaseError, explainKvError, Health, Lifecycle, sealer, VERSION, type ActivatedPlugins, type Config, type Log } from '@gateway/core';
import { Sandbox } from '@gateway/sandbox';
import { deactivateEndpoint, keepUp, openDatabase, openKv, requireMigrated, type AttemptRecord, type Database, type Kv } from '@gateway/store';
import { hostname } from 'node:os';
import { Acceptor } from './accept.js';
import { Heart } from './beat.js';
import { Claimer } from './claim.js';
import { Deliverer } from './deliver.js';
import { GiveBack } from './give-back.js';
import { serveHttp } from './http.js';
import { Intake } from './intake.js';
import { MemoryStore, type Endpoint } from './memory-store.js';
import { consumeCreateEvent, consumeMatchSubscriptions } from './queues.js';
import { Recorder } from './record.js';
import { reportHealth } from './report-health.js';
import { RequestBuilder } from './request.js';
import { pendingRouter } from './route-pending.js';
import { Sender } from './send.js';
import { Sources } from './sources.js';
import { countMessage, countRecorded } from './telemetry.js';
import { Throttle } from './throttle.js';
import { Transformer } from './transform.js';

export interface AgentOptions {
  readonly config: Config;
  readonly plugins: ActivatedPlugins;
  readonly log: Log;
  /** In place of what the settings name: `gateway dev` shares one KV among its parts. */
  readonly kv?: Kv;
}

/** Connections for prepared statements: commits, records, and what happens from time to time. */
const COMMITTERS = 3;
const WRITERS = 2;
const OTHER_CONNECTIONS = 3;
const UPKEEP_MS = 3_600_000;

/**
 * Starts the data plane: reads sources, delivers events, answers /healthz and /metrics.
 *
 * @returns the port of its HTTP server, and `close`, which drains: it stops reading, settles what is in flight, and releases the rest
 * @throws GatewayError when a setting is missing, Postgres or KV does not answer, a migration is pending, or the port is taken
 */
export async function startAgent({ config, plugins, log, kv: givenKv }: AgentOptions): Promise<{ port: number; close(): Promise<void> }> {
  const { open } = sealer(config.encryption_key);
  const lifecycle = new Lifecycle(log);
  const drainTimeoutMs = config.agent.drain_timeout_seconds * 1000;
  const close = () => lifecycle.close({ deadlineMs: drainTimeoutMs });
  try {
    const health = new Health();
    const database = openDatabase(config.database, { poolSize: Math.max(config.database.max_open_connections, COMMITTERS + WRITERS + OTHER_CONNECTIONS), name: 'gateway-agent' });
    lifecycle.add('database', () => database.close());
    await requireMigrated(database).catch((error: unknown) => {
      throw explainDatabaseError(error, config.database);
    });
    const kv = givenKv ?? (await openReachableKv(config, log));
    if (!givenKv) lifecycle.add('kv', () => kv.close());

    const store = new MemoryStore(database, { intervalMs: config.agent.interval_seconds * 1000, log });
    const way = buildWay({ config, plugins, log, health, database, kv, store, open });
    store.on('gateway_due', () => way.claimer.dueEverywhere());
    lifecycle.add('store', () => store.close());
    await store.start();

    await way.heart.start();
    lifecycle.add('heart', () => way.heart.leave());
    lifecycle.add('sender', () => way.sender.close());
    lifecycle.add('sandbox', () => way.sandbox.close());
    const stopReporting = reportHealth(health, { config, way, store, kv });
    lifecycle.add('health', stopReporting);

    const http = await serveHttp({ config, health, plugins, isDraining: () => way.draining });
    lifecycle.add('http', () => http.close());
    const upkeep = setInterval(() => void keepUp(database.pool).catch((error: unknown) => log.warn({ err: error }, 'Partitions of the coming days could not be made.')), UPKEEP_MS);
    lifecycle.add('upkeep', () => clearInterval(upkeep));
    await keepUp(database.pool);

    lifecycle.add('way', () => way.drain());
    way.start();
    log.info({ agent_id: way.heart.id, port: http.port, mode: config.agent.mode, sources: store.sources.length }, 'The agent is ready.');
    return { port: http.port, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openReachableKv(config: Config, log: Log): Promise<Kv> {
  let away = false;
  let last: unknown;
  const kv = openKv(config.kv, (error) => {
    last = error;
    if (!away) log.warn({ err: error }, 'KV is away; the way of a message goes on without it.');
    away = true;
  });
  for (let tries = 0; ; tries++) {
    try {
      await kv.ping();
      away = false;
      return kv;
    } catch (error) {
      if (tries >= 30) {
        await kv.close();
        throw explainKvError(last ?? error, config.kv);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

export type Way = ReturnType<typeof buildWay>;

/** Every step of the way of a message, in order, each with what it hands on to. */
function buildWay({
  config,
  plugins,
  log,
  health,
  database,
  kv,
  store,
  open,
}: {
  config: Config;
  plugins: ActivatedPlugins;
  log: Log;
  health: Health;
  database: Database;
  kv: Kv;
  store: MemoryStore;
  open: (sealed: string) => string;
}) {
  const { mode } = config.agent;
  const claimsFirstAttempts = mode !== 'retry';
  const agentId = () => heart.id;
  const onScheduled = (projectId: string, dueInMs: number) => claimer.due(projectId, dueInMs);

  const giveBack = new GiveBack({ database, log });
  const recorder = new Recorder({
    database,
    log,
    writers: WRITERS,
    onRecorded: (attempts: readonly AttemptRecord[]) => {
      for (const attempt of attempts) if (attempt.dueInMs !== null) claimer.due(attempt.projectId, attempt.dueInMs);
      countRecorded(plugins, attempts);
      deliverer.recorded(attempts.length);
    },
  });
  const sender = new Sender({ allowedNetworks: config.delivery.allowed_networks, maxResponseBytes: config.max_response_size * 1024 });
  const deliverer: Deliverer = new Deliverer({
    store,
    sender,
    requests: new RequestBuilder({ open, version: VERSION }),
    log,
    consumers: config.consumer_pool_size,
    endpointConcurrency: config.delivery.endpoint_concurrency,
    maxOutstanding: config.delivery.max_outstanding,
    record: (attempt) => recorder.push(attempt),
    release: (deliveries, dueInMs) => {
      giveBack.push(deliveries, { to: 'due', dueInMs });
      for (const projectId of new Set(deliveries.map((delivery) => delivery.projectId))) claimer.due(projectId, dueInMs);
    },
    discard: (deliveries, reason) => giveBack.push(deliveries, { to: 'discarded', reason }),
    gone: (endpoint: Endpoint) => {
      log.info({ endpoint_id: endpoint.id, project_id: endpoint.projectId }, 'An endpoint answered 410 Gone and is deactivated.');
      deactivateEndpoint(database.pool, endpoint.projectId, endpoint.id, 'It answered 410 Gone.').catch((error: unknown) =>
        log.warn({ err: error, endpoint_id: endpoint.id }, 'An endpoint that answered 410 could not be deactivated; its next answer tries again.'),
      );
    },
  });
  const claimer: Claimer = new Claimer({ database, store, deliverer, log, agentId, mode });
  const router = pendingRouter({ database, store, deliverer, log, agentId, claimsFirstAttempts, onScheduled });
  const acceptor = new Acceptor({
    database,
    kv,
    store,
    deliverer,
    log,
    agentId,
    batchSize: config.ingest.batch_size,
    committers: COMMITTERS,
    idempotencyWindowSeconds: config.ingest.idempotency_window_seconds,
    routeInline: config.ingest.inline_routing,
    claimsFirstAttempts,
    onScheduled,
  });
  const sandbox = new Sandbox({
    deadlineMs: config.transform.deadline_ms,
    memoryMb: config.transform.memory_mb,
    maxOutputBytes: config.transform.max_output_bytes,
    processes: config.transform.processes,
  });
  const throttle = new Throttle({ kv, ratePerSecond: config.instance_ingest_rate, agents: () => heart.agents, log });
  const intake = new Intake({
    throttle,
    transformer: new Transformer(sandbox),
    acceptor,
    log,
    maxMessageBytes: config.ingest.max_message_bytes,
    count: (source, outcome, receivedAtMs) => countMessage(plugins, source, outcome, receivedAtMs),
  });
  const sources = new Sources({
    store,
    intake,
    log,
    health,
    plugin: (type) => plugins.sources.get(type),
    known: () => [...plugins.sources.keys()],
    openSecret: open,
    window: config.ingest.window,
  });
  const heart: Heart = new Heart({
    database,
    kv,
    store,
    router,
    claimer,
    log,
    name: `${hostname()}:${process.pid}`,
    onRecovered: (count) => plugins.meter.add('gateway_deliveries_recovered', {}, count),
    onReconciled: (count) => plugins.meter.add('gateway_events_recovered', {}, count),
    onReborn: () => deliverer.forgetWaiting(),
  });
  const queues = new AbortController();

  return {
    sandbox,
    sender,
    claimer,
    heart,
    acceptor,
    recorder,
    deliverer,
    draining: false,
    start() {
      if (mode !== 'retry') {
        sources.start();
        void consumeCreateEvent({ kv, router, deliverer, log }, queues.signal);
        void consumeMatchSubscriptions({ kv, router, deliverer, log }, queues.signal);
      }
    },
    /**
     * Stops reading, lets the commits that are under way end (their messages are acknowledged), and then lets the requests that are under way end;
     * what waits goes back to Postgres for other agents. `forced` ends what hangs when the deadline of the process is near.
     */
    async drain(this: { draining: boolean }) {
      this.draining = true;
      const forced = setTimeout(
        () => {
          log.warn({ outstanding: deliverer.outstanding }, 'The drain takes too long; what is unsettled is left to other agents.');
          acceptor.stop();
          recorder.stop();
          giveBack.stop();
        },
        Math.max(0, config.agent.drain_timeout_seconds - 3) * 1000,
      );
      queues.abort();
      const claiming = claimer.stop();
      intake.stop();
      await sources.stop();
      await claiming;
      await heart.stop();
      await deliverer.drain();
      await recorder.settled();
      await giveBack.settled();
      clearTimeout(forced);
    },
  };
}
