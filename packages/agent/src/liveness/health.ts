import { databaseReason, kvReason } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import {
  type ComponentState,
  type Health,
  type OngoingFailure,
  latestOf,
} from '@gateway/core/process';
import { hostname } from 'node:os';
import { probeDatabase } from '@gateway/store/postgres';
import type { AgentContext, ProcessContext } from '../config/agent-context.js';
import type { Clock } from '../model/clock.js';
import type { ShardHealth } from '../model/shard-health.js';
import { failingStages, type RepeatingStages } from '../model/stages.js';
import type { Destination } from '../model/destination.js';
import type { AgentHeartbeat } from './heartbeat.js';
import type { SuccessStreak } from './success-streak.js';

const CHECK_MS = 1_000;
const PROBE_MS = 3_000;
/**
 * The number of checks per KV ping. KV is checked less often than Postgres, because messages are
 * processed without it, and more often while it is down.
 */
const CHECKS_PER_KV_PING = 10;
const CHECKS_PER_KV_PING_AWAY = 2;

/** The maximum number of projects, endpoints or subscriptions named in a reason. */
const NAMED_MAX = 5;

/**
 * The clock difference above which health is degraded. Receivers reject a `webhook-timestamp` that
 * is minutes old, so half a minute leaves time to correct the clock.
 */
const CLOCK_WRONG_MS = 30_000;

const SENTENCES = {
  postgres: [
    'Postgres is unavailable: messages stay with their brokers, and deliveries wait.',
    'Postgres is available again.',
  ],
  kv: ['KV is unavailable: events are routed without it.', 'KV is available again.'],
  clock: [
    'The clock of this machine differs from that of Postgres.',
    'The clock of this machine agrees with that of Postgres again.',
  ],
  projects: ['Projects cannot be loaded; the others go on.', 'All projects are loaded again.'],
  unreadable: [
    'Cannot read configuration of a newer version or another key; what needs it waits for another agent.',
    'All configuration can be read again.',
  ],
  resources: [
    'This agent has run short of a resource; deliveries wait.',
    'This agent can open connections again.',
  ],
  endpoints: ['No delivery succeeds, to any endpoint.', 'Deliveries succeed again.'],
} as const;

type Dependency = keyof typeof SENTENCES;

type Report = (
  dependency: Dependency,
  state: ComponentState,
  reason?: string,
  since?: Date,
) => void;

/** Returns a function that reports a dependency to health, and logs when its state changes. */
function reporter(health: ShardHealth, log: Log): Report {
  return (dependency, state, reason, since = new Date()) => {
    const before = health.of(dependency);
    health.report(dependency, state, reason, since);
    const [away, back] = SENTENCES[dependency];
    if (state !== 'ok' && (before?.state ?? 'ok') === 'ok')
      log.warn({ dependency, since, reason }, away);
    else if (state === 'ok' && before && before.state !== 'ok') {
      log.info(
        {
          dependency,
          since: before.since,
          seconds: Math.round((Date.now() - before.since.getTime()) / 1000),
        },
        back,
      );
    }
  };
}

type WatchedWorker = RepeatingStages & {
  readonly heartbeat: AgentHeartbeat;
  readonly clock: Clock;
};

/**
 * Reports the Postgres of a shard, and its clock. Returns a function that stops the checks and
 * forgets both.
 */
export function reportShardHealth(
  { heartbeat, clock, ...parts }: WatchedWorker,
  {
    configCache,
    shard,
    health,
    log,
  }: Pick<AgentContext, 'configCache' | 'shard' | 'health' | 'log'>,
): () => void {
  const { pool } = shard.database;
  const reported = reporter(health, log);
  let isStopped = false;
  // A probe can end after the worker is closed, and would report its shard for ever.
  const report: Report = (...state) => isStopped || reported(...state);
  const reportPostgres = (error: unknown, since: Date) => {
    const { reason, fix } = databaseReason(error, shard.settings);
    report(
      'postgres',
      'down',
      `${reason}. Messages stay with their brokers meanwhile. To fix it: ${fix}.`,
      since,
    );
  };
  const failingNow = () => [
    ...failingStages(parts),
    ...[heartbeat, configCache].flatMap(({ failing }) => failing ?? []),
  ];
  const sinceOf = (failing: readonly OngoingFailure[], otherwise: Date) =>
    new Date(
      Math.min(
        ...(failing.length > 0
          ? failing.map(({ since }) => since.getTime())
          : [otherwise.getTime()]),
      ),
    );

  let probing = false;
  const checkPostgres = async () => {
    // An idle agent without errors is not probed: its next heartbeat notices an outage.
    if (
      failingNow().length === 0 &&
      pool.totalCount === pool.idleCount &&
      pool.waitingCount === 0 &&
      health.of('postgres')?.state === 'ok'
    )
      return;
    if (probing) return;
    probing = true;
    const askedAt = new Date();
    try {
      const { isWritable } = await probeDatabase(pool, PROBE_MS);
      const failing = failingNow();
      const latest = latestOf(failing);
      if (!isWritable) reportPostgres({ code: '25006' }, sinceOf(failing, askedAt));
      // The probe succeeds, but statements still fail, so Postgres is reported as down.
      else if (latest) reportPostgres(latest.error, sinceOf(failing, askedAt));
      else report('postgres', 'ok');
      // Refreshes now, because the next scheduled refresh may be far off. Not awaited, because its
      // statement may hang.
      if (configCache.failing) void configCache.refresh();
    } catch (error) {
      reportPostgres(error, sinceOf(failingNow(), askedAt));
    } finally {
      probing = false;
    }
  };

  const checkClock = () => {
    const seconds = Math.round(clock.offsetMs / 1000);
    if (seconds === 0) return report('clock', 'ok');
    const reason = `The clock of ${hostname()} is ${Math.abs(seconds)} s ${seconds > 0 ? 'behind' : 'ahead of'} that of Postgres; requests are signed with the time of Postgres. Synchronise both machines (NTP).`;
    report('clock', Math.abs(clock.offsetMs) > CLOCK_WRONG_MS ? 'degraded' : 'ok', reason);
  };

  const check = () => {
    void checkPostgres();
    checkClock();
  };
  health.report('postgres', 'ok');
  check();
  const timer = setInterval(check, CHECK_MS);
  return () => {
    isStopped = true;
    clearInterval(timer);
    for (const dependency of ['postgres', 'clock']) health.forget(dependency);
  };
}

interface WatchedProcess extends Pick<ProcessContext, 'config' | 'configCache' | 'kv' | 'log'> {
  readonly health: Health;
  readonly successStreak: SuccessStreak;
  readonly destination: Pick<Destination, 'shortage'>;
}

/**
 * Reports KV, the configuration, the resources of the process and whether any delivery succeeds.
 * Returns a function that stops the checks.
 */
export function reportProcessHealth({
  config,
  configCache,
  kv,
  log,
  health,
  successStreak,
  destination,
}: WatchedProcess): () => void {
  const report = reporter(health, log);
  const checkKv = () =>
    kv.ping().then(
      () => report('kv', 'ok'),
      (error: unknown) =>
        report('kv', 'degraded', `${kvReason(error, config.kv)}. Events are routed without it.`),
    );

  /** Reports a dependency that health shows only while it is degraded. */
  const reportDegraded = (dependency: Dependency, reason?: string, since?: Date) => {
    if (reason !== undefined) return report(dependency, 'degraded', reason, since);
    if (!health.of(dependency)) return;
    report(dependency, 'ok');
    health.forget(dependency);
  };
  const listed = (all: readonly string[]) =>
    `${all.slice(0, NAMED_MAX).join(', ')}${all.length > NAMED_MAX ? ` and ${all.length - NAMED_MAX} more` : ''}`;

  const checkEndpoints = () => {
    const outage = successStreak.outage(Date.now());
    reportDegraded('endpoints', outage?.reason, outage?.since);
    const { shortage } = destination;
    reportDegraded(
      'resources',
      shortage && `Requests could not be sent: ${shortage.reason}. Deliveries wait meanwhile.`,
      shortage?.since,
    );
  };

  const checkProjects = () => {
    const skipped = [...configCache.skipped].map(([id, reason]) => `${id} (${reason})`);
    reportDegraded(
      'projects',
      skipped.length > 0
        ? `Cannot be loaded: ${listed(skipped)}. Each is tried again when it is changed; make it smaller or correct it.`
        : undefined,
    );
  };

  const checkReadable = () => {
    const found = [...configCache.projects.values()].flatMap(({ unreadable, unreadableFilter }) => [
      ...[...unreadable].map(({ id, unreadable: reason }) => `endpoint ${id} (${reason})`),
      ...(unreadableFilter === undefined ? [] : [`the filter of subscription ${unreadableFilter}`]),
    ]);
    reportDegraded(
      'unreadable',
      found.length > 0
        ? `This agent cannot read ${listed(found)}. Nothing is attempted, and what needs it waits for an agent that can. Start agents of the version that saved it, with the key of the database, or save it again.`
        : undefined,
    );
  };

  let checks = 0;
  const check = () => {
    checkEndpoints();
    checkProjects();
    checkReadable();
    if (
      checks++ %
        (health.of('kv')?.state === 'degraded' ? CHECKS_PER_KV_PING_AWAY : CHECKS_PER_KV_PING) ===
      0
    )
      void checkKv();
  };
  check();
  const timer = setInterval(check, CHECK_MS);
  return () => clearInterval(timer);
}
