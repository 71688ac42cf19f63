import type { Config } from '@gateway/core/config';
import { databaseReason, kvReason } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { ComponentState, Health } from '@gateway/core/process';
import type { Kv } from '@gateway/store/kv';
import { probeDatabase, type Database } from '@gateway/store/postgres';
import type { ConfigCache } from '../config/config-cache.js';
import type { Wiring } from '../wiring.js';

const LOOK_MS = 1_000;
/** Postgres that does not answer a probe within this is away, though its connections stand. */
const PROBE_MS = 3_000;
/** KV is asked less often: its state matters little to the way of a message. While it is away its return is looked for more often. */
const KV_EVERY = 10;
const KV_AWAY_EVERY = 2;

/** What is logged when a dependency goes away, and when it is back. */
const SENTENCES = {
  postgres: ['Postgres is away: messages stay with their brokers, and deliveries wait.', 'Postgres is back.'],
  kv: ['KV is away: events are routed without it.', 'KV is back.'],
  endpoints: ['No delivery succeeds, to any endpoint.', 'Deliveries succeed again.'],
} as const;

type Dependency = keyof typeof SENTENCES;

/** Tells health, and the log once at either end, how Postgres, KV and the endpoints stand, from what the steps of the way met. Returns what stops it. */
export function reportHealth(
  health: Health,
  {
    config,
    wiring,
    store,
    database,
    kv,
    log,
  }: { config: Config; wiring: Wiring; store: ConfigCache; database: Database; kv: Kv; log: Log },
): () => void {
  const tell = (dependency: Dependency, state: ComponentState, reason?: string, since = new Date()) => {
    const before = health.of(dependency);
    health.report(dependency, state, reason, since);
    const [away, back] = SENTENCES[dependency];
    if (state !== 'ok' && (before?.state ?? 'ok') === 'ok') log.warn({ dependency, since, reason }, away);
    else if (state === 'ok' && before && before.state !== 'ok') {
      log.info({ dependency, since: before.since, seconds: Math.round((Date.now() - before.since.getTime()) / 1000) }, back);
    }
  };
  const parts = () => [wiring.eventWriter, wiring.attemptWriter, wiring.heartbeat, store].flatMap(({ failingSince }) => failingSince ?? []);
  const tellPostgres = (error: unknown, since: Date) => {
    const { reason, fix } = databaseReason(error, config.database);
    tell('postgres', 'down', `${reason}. Messages stay with their brokers meanwhile. To mend it: ${fix}.`, since);
  };

  let probing = false;
  const lookAtPostgres = async () => {
    const failing = earliest(parts());
    const { pool } = database;
    // One that has nothing under way and met no error costs no statement: an idle agent finds out with its next beat.
    if (!failing && pool.totalCount === pool.idleCount && pool.waitingCount === 0 && health.of('postgres')?.state === 'ok') return;
    if (probing) return;
    probing = true;
    const askedAt = new Date();
    try {
      const { isWritable } = await probeDatabase(pool, PROBE_MS);
      // Its next read may be far, and Postgres answers.
      if (store.failingSince) await store.refresh();
      const stillFailing = earliest(parts());
      if (!isWritable) tellPostgres({ code: '25006' }, stillFailing ?? askedAt);
      // It answers, and yet a step of the way fails: of these the acceptor knows why.
      else if (failing && stillFailing)
        tellPostgres(wiring.eventWriter.failure ?? { message: 'statements fail; the log has the errors' }, stillFailing);
      else tell('postgres', 'ok');
    } catch (error) {
      tellPostgres(error, earliest(parts()) ?? askedAt);
    } finally {
      probing = false;
    }
  };

  const lookAtKv = () =>
    kv.ping().then(
      () => tell('kv', 'ok'),
      (error: unknown) => tell('kv', 'degraded', `${kvReason(error, config.kv)}. Events are routed without it. Check kv.host and kv.port.`),
    );

  const lookAtEndpoints = () => {
    const trouble = wiring.successStreak.trouble(Date.now());
    if (trouble) tell('endpoints', 'degraded', trouble.reason, trouble.since);
    else if (health.of('endpoints')) {
      tell('endpoints', 'ok');
      // Only told of while there is something to tell.
      health.forget('endpoints');
    }
  };

  let looks = 0;
  const look = () => {
    void lookAtPostgres();
    lookAtEndpoints();
    if (looks++ % (health.of('kv')?.state === 'degraded' ? KV_AWAY_EVERY : KV_EVERY) === 0) void lookAtKv();
  };
  health.report('postgres', 'ok');
  look();
  const timer = setInterval(look, LOOK_MS);
  return () => clearInterval(timer);
}

function earliest(times: readonly Date[]): Date | null {
  return times.reduce<Date | null>((first, time) => (first && first <= time ? first : time), null);
}
