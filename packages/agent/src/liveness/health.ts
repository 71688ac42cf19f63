import type { Config } from '@gateway/core/config';
import { databaseReason, kvReason } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { ComponentState, Health } from '@gateway/core/process';
import type { Kv } from '@gateway/store/kv';
import { probeDatabase, type Database } from '@gateway/store/postgres';
import type { EventWriter } from '../commit/event-writer.js';
import type { ConfigCache } from '../config/config-cache.js';
import type { AttemptWriter } from '../commit/attempt-writer.js';
import type { SuccessStreak } from '../delivery/success-streak.js';
import type { Heartbeat } from './heartbeat.js';

const CHECK_MS = 1_000;
const PROBE_MS = 3_000;
/** KV is checked less often, since messages move without it; more often while it is away, to see it return. */
const CHECKS_PER_KV_PING = 10;
const CHECKS_PER_KV_PING_AWAY = 2;

/** Logged when a dependency goes away and when it is back. */
const SENTENCES = {
  postgres: ['Postgres is away: messages stay with their brokers, and deliveries wait.', 'Postgres is back.'],
  kv: ['KV is away: events are routed without it.', 'KV is back.'],
  endpoints: ['No delivery succeeds, to any endpoint.', 'Deliveries succeed again.'],
} as const;

type Dependency = keyof typeof SENTENCES;

interface Watched {
  readonly eventWriter: EventWriter;
  readonly attemptWriter: AttemptWriter;
  readonly heartbeat: Heartbeat;
  readonly successStreak: SuccessStreak;
}

/**
 * Reports Postgres, KV and endpoints to health, and logs when one goes away and when it is back.
 *
 * @returns stops it
 */
export function reportHealth(
  health: Health,
  { eventWriter, attemptWriter, heartbeat, successStreak }: Watched,
  { config, store, database: { pool }, kv, log }: { config: Config; store: ConfigCache; database: Database; kv: Kv; log: Log },
): () => void {
  const report = (dependency: Dependency, state: ComponentState, reason?: string, since = new Date()) => {
    const before = health.of(dependency);
    health.report(dependency, state, reason, since);
    const [away, back] = SENTENCES[dependency];
    if (state !== 'ok' && (before?.state ?? 'ok') === 'ok') log.warn({ dependency, since, reason }, away);
    else if (state === 'ok' && before && before.state !== 'ok') {
      log.info({ dependency, since: before.since, seconds: Math.round((Date.now() - before.since.getTime()) / 1000) }, back);
    }
  };
  const reportPostgres = (error: unknown, since: Date) => {
    const { reason, fix } = databaseReason(error, config.database);
    report('postgres', 'down', `${reason}. Messages stay with their brokers meanwhile. To fix it: ${fix}.`, since);
  };
  const failingSince = () => {
    const times = [eventWriter, attemptWriter, heartbeat, store].flatMap((it) => it.failingSince?.getTime() ?? []);
    return times.length === 0 ? null : new Date(Math.min(...times));
  };

  let probing = false;
  const checkPostgres = async () => {
    const isFailing = failingSince() !== null;
    // An idle agent without errors skips the probe: its next heartbeat notices.
    if (!isFailing && pool.totalCount === pool.idleCount && pool.waitingCount === 0 && health.of('postgres')?.state === 'ok') return;
    if (probing) return;
    probing = true;
    const askedAt = new Date();
    try {
      const { isWritable } = await probeDatabase(pool, PROBE_MS);
      // The next refresh of the cache may be far away.
      if (store.failingSince) await store.refresh();
      const since = failingSince();
      if (!isWritable) reportPostgres({ code: '25006' }, since ?? askedAt);
      // It answers the probe, but statements still fail; the event writer knows why.
      else if (isFailing && since) reportPostgres(eventWriter.failure ?? { message: 'statements fail; the log has the errors' }, since);
      else report('postgres', 'ok');
    } catch (error) {
      reportPostgres(error, failingSince() ?? askedAt);
    } finally {
      probing = false;
    }
  };

  const checkKv = () =>
    kv.ping().then(
      () => report('kv', 'ok'),
      (error: unknown) =>
        report('kv', 'degraded', `${kvReason(error, config.kv)}. Events are routed without it. Check kv.host and kv.port.`),
    );

  const checkEndpoints = () => {
    const problem = successStreak.trouble(Date.now());
    if (problem) report('endpoints', 'degraded', problem.reason, problem.since);
    else if (health.of('endpoints')) {
      report('endpoints', 'ok');
      // Listed only while there is trouble.
      health.forget('endpoints');
    }
  };

  let checks = 0;
  const check = () => {
    void checkPostgres();
    checkEndpoints();
    if (checks++ % (health.of('kv')?.state === 'degraded' ? CHECKS_PER_KV_PING_AWAY : CHECKS_PER_KV_PING) === 0) void checkKv();
  };
  health.report('postgres', 'ok');
  check();
  const timer = setInterval(check, CHECK_MS);
  return () => clearInterval(timer);
}
