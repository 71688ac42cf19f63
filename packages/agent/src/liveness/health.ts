import type { Log } from '@gateway/core/logging';
import { latestOf, type Health, type OngoingFailure } from '@gateway/core/process';
import {
  checkKv,
  clockFault,
  databaseFault,
  faultText,
  readOnly,
  type Fault,
} from '@gateway/ingest/dependencies';
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

type Report = (dependency: Dependency, fault?: Fault, since?: Date) => void;

/** Reports the state of a dependency to health, and logs when it changes. */
function reporter(health: ShardHealth, log: Log): Report {
  return (dependency, fault, since = new Date()) => {
    const before = health.of(dependency);
    const reason = fault && faultText(fault);
    health.report(dependency, fault?.state ?? 'ok', reason, since);
    const [away, back] = SENTENCES[dependency];
    if (fault && (before?.state ?? 'ok') === 'ok') log.warn({ dependency, since, reason }, away);
    else if (!fault && before && before.state !== 'ok') {
      const seconds = Math.round((Date.now() - before.since.getTime()) / 1000);
      log.info({ dependency, since: before.since, seconds }, back);
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
  const { database, settings } = shard;
  const { pool } = database;
  const reported = reporter(health, log);
  let isStopped = false;
  // A probe can end after the worker is closed, and would report its shard for ever.
  const report: Report = (...state) => isStopped || reported(...state);
  const failingNow = () => [
    ...failingStages(parts),
    ...[heartbeat, configCache].flatMap(({ failing }) => failing ?? []),
  ];
  const reportPostgres = (fault: Fault, failing: readonly OngoingFailure[], askedAt: Date) => {
    const began = failing.map(({ since }) => since.getTime());
    const since = new Date(began.length > 0 ? Math.min(...began) : askedAt);
    report('postgres', fault, since);
  };

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
      if (!isWritable) reportPostgres(readOnly(settings, shard.name), failing, askedAt);
      // The probe succeeds, but statements still fail, so Postgres is reported as down.
      else if (latest)
        reportPostgres(databaseFault(latest.error, settings, shard.name), failing, askedAt);
      else report('postgres');
      // Refreshes now, because the next scheduled refresh may be far off. Not awaited, because its
      // statement may hang.
      if (configCache.failing) void configCache.refresh();
    } catch (error) {
      reportPostgres(databaseFault(error, settings, shard.name), failingNow(), askedAt);
    } finally {
      probing = false;
    }
  };

  const checkClock = () => {
    const fault = clockFault(clock.offsetMs);
    // A difference of seconds is for doctor: requests are signed with the time of Postgres.
    report('clock', fault?.state === 'down' ? { ...fault, state: 'degraded' } : undefined);
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

  /** For a dependency that health shows only while it is degraded. */
  const reportDegraded = (dependency: Dependency, reason: string | false, since?: Date) => {
    if (reason !== false) return report(dependency, { state: 'degraded', reason }, since);
    if (!health.of(dependency)) return;
    report(dependency);
    health.forget(dependency);
  };
  const reportListed = (dependency: Dependency, all: readonly string[], rest: string) => {
    const more = all.length > NAMED_MAX ? ` and ${all.length - NAMED_MAX} more` : '';
    const listed = `${all.slice(0, NAMED_MAX).join(', ')}${more}`;
    reportDegraded(dependency, all.length > 0 && rest.replace('#', () => listed));
  };

  const checkDeliveries = () => {
    const outage = successStreak.outage(Date.now());
    reportDegraded('endpoints', outage?.reason ?? false, outage?.since);
    const { shortage } = destination;
    reportDegraded(
      'resources',
      shortage !== undefined &&
        `Requests could not be sent: ${shortage.reason}. Deliveries wait meanwhile`,
      shortage?.since,
    );
  };

  const checkProjects = () => {
    reportListed(
      'projects',
      [...configCache.skipped].map(([id, reason]) => `${id} (${reason})`),
      'Cannot be loaded: #. Each is tried again when it is changed; make it smaller or correct it',
    );
    reportListed(
      'unreadable',
      [...configCache.projects.values()].flatMap(({ unreadable, unreadableFilter }) => [
        ...[...unreadable].map(({ id, unreadable: reason }) => `endpoint ${id} (${reason})`),
        ...(unreadableFilter === undefined
          ? []
          : [`the filter of subscription ${unreadableFilter}`]),
      ]),
      'This agent cannot read #. Nothing is attempted, and what needs it waits for an agent that can. Start agents of the version that saved it, with the key of the database, or save it again',
    );
  };

  let checks = 0;
  const check = () => {
    checkDeliveries();
    checkProjects();
    const every =
      health.of('kv')?.state === 'degraded' ? CHECKS_PER_KV_PING_AWAY : CHECKS_PER_KV_PING;
    if (checks++ % every === 0)
      void checkKv(kv, config.kv, PROBE_MS).then((fault) => report('kv', fault));
  };
  check();
  const timer = setInterval(check, CHECK_MS);
  return () => clearInterval(timer);
}
