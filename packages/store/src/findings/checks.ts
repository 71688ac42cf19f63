import type { HealthComponent } from '@gateway/core/process';
import {
  WAITING_MAX,
  type EndpointTrouble,
  type EndpointTroubles,
  type ProjectStates,
} from '../counts/health.js';
import type { BreakerView } from '../kv/index.js';
import type { MoveState } from '../moves/index.js';
import type { ArchiveFailure } from '../retention/archive-first.js';
import type { SourceConditions } from './source-conditions.js';
import { FINDINGS, type Finding, type FindingCode } from './table.js';
import { clock, figure, namesOf, span, things, upTo } from './wording.js';

/** Requests to it fail, or its breaker is not closed. */
export interface FailingEndpoint extends EndpointTrouble {
  /** Undefined while the breaker is closed or unknown. */
  readonly breaker: BreakerView | undefined;
}

/** The project as read, if Postgres and its shard can be used. */
export interface ProjectFacts {
  readonly states: ProjectStates;
  /** Undefined without an archive, or while it is writable. */
  readonly archiveFailure: ArchiveFailure | undefined;
  readonly endpoints: Pick<EndpointTroubles, 'count'> & {
    readonly content: readonly FailingEndpoint[];
  };
  readonly sources: SourceConditions;
  /** The move of the project to another shard that has not ended. */
  readonly move: MoveState | undefined;
}

/** Components without a fault may be missing. */
export interface HealthFacts {
  readonly now: Date;
  readonly components: Readonly<
    Partial<Record<'postgres' | 'migrations' | 'kv' | 'replicas', HealthComponent | undefined>>
  >;
  /** The shard of the project, if that cannot be used. */
  readonly shard: { readonly name: string; readonly since: Date } | undefined;
  readonly project: ProjectFacts | undefined;
}

interface Named {
  readonly id: string;
  readonly name: string;
}

/** The text of the beginning is empty if that is unknown. */
type Found = readonly [
  since: Date | null,
  sentence: (since: string) => string,
  /** One by default. */
  count?: number,
  /** The endpoints or sources that it is about. */
  those?: readonly Named[],
];
type Findings = Partial<Record<FindingCode, Found | false | undefined>>;

/** No agent takes work that waits longer. */
const LATE_SECONDS = 30;

/** Needs what probes of the process know. */
function ofDependencies({ components, shard, project }: HealthFacts): Findings {
  const { postgres, migrations, kv, replicas } = components;
  const unknown = project?.sources.conditions.filter(({ state }) => state === 'unknown').length;
  return {
    postgres_away: postgres?.state === 'down' && [
      postgres.since,
      (since) =>
        `Postgres has not answered${since}: nothing is accepted or delivered, and other states are unknown.`,
    ],
    postgres_read_only: postgres?.state === 'degraded' && [
      postgres.since,
      (since) => `Postgres has accepted no writes${since}: nothing is accepted or delivered.`,
    ],
    shard_away: shard && [
      shard.since,
      (since) =>
        `The shard ${shard.name} has not been usable${since}: events of this project on it are not accepted, shown or delivered.`,
    ],
    migrations_pending: migrations?.state === 'down' &&
      postgres?.state !== 'down' && [
        migrations.since,
        () => `The database lacks migrations: ${migrations.reason}`,
      ],
    kv_away: kv &&
      kv.state !== 'ok' && [
        kv.since,
        (since) =>
          `Redis has not answered${since}: the states of circuit breakers${unknown ? ` and of ${things(unknown, 'source')}` : ''} are unknown.`,
      ],
    replicas_behind: replicas?.state === 'degraded' && [
      replicas.since,
      (since) => `A read replica has been left out${since}: ${replicas.reason}`,
    ],
  };
}

/** Needs the agents and the queues of the project. */
function ofStates({ states, move, archiveFailure }: ProjectFacts, now: Date): Findings {
  const {
    pending_events: pending,
    oldest_pending_seconds: pendingSeconds,
    due_deliveries: due,
    oldest_due_seconds: dueSeconds,
    quarantined_messages: quarantined,
    held_deliveries: held,
  } = states;
  const late = (
    seconds: number | null,
    count: number,
    sentence: (age: string) => string,
  ): Found | false =>
    (seconds ?? 0) > LATE_SECONDS && [
      new Date(now.getTime() - seconds! * 1000),
      () => sentence(span(seconds!)),
      count,
    ];
  return {
    agents_gone: states.agents === 0 && [
      states.agents_until,
      (since) => `No agent is running${since}: nothing is routed or delivered.`,
    ],
    events_waiting: late(
      pendingSeconds,
      pending,
      (age) =>
        `${things(pending, 'event waits', 'events wait')} to be routed, the oldest for ${age}.`,
    ),
    deliveries_late: late(
      dueSeconds,
      due,
      (age) =>
        `${things(due, 'delivery is', 'deliveries are')} due and not sent, the oldest for ${age}.`,
    ),
    project_moving: move && [
      move.begun_at,
      () =>
        `${movedWords(move, now)}${move.error === null ? '.' : `. The last try failed: ${move.error}`}`,
    ],
    messages_quarantined: quarantined > 0 && [
      states.quarantined_since,
      (since) =>
        `${things(quarantined, 'message')} could not be accepted: in quarantine${quarantined === 1 ? '' : ', the first'}${since}.`,
      quarantined,
    ],
    deliveries_held: held > 0 && [
      states.paused_since,
      (since) =>
        `${things(held, 'delivery is', 'deliveries are')} held for endpoints paused${since}.`,
      held,
    ],
    archive_failing: archiveFailure && [
      archiveFailure.since,
      (since) =>
        archiveFailure.isOfProject
          ? `Expired events of this project have not been archived${since}, and are kept: ${archiveFailure.reason.split(' in the archive ')[0]} in the archive cannot be read. The log of the agents has the reason.`
          : `The archive has not been writable${since}: expired events are kept and fill the disk of Postgres, until it can be written or archive.give_up_before lets go of them. The log of the agents has the reason.`,
    ],
  };
}

/** Says what is missing while a project is moved. */
function movedWords({ phase, from, to, events_left: left, copied_to: at }: MoveState, now: Date) {
  if (phase !== 'history')
    return `The project is moving from the shard ${from} to ${to}: new events wait`;
  const which = at ? `Events from before ${clock(at, now)}` : 'Earlier events';
  return `${which} are still on the shard ${from}${left ? ` (${figure(left)} left)` : ''}, are not listed or counted, and their deliveries wait`;
}

/** Needs the breakers and the counted requests. */
function ofEndpoints({ states, endpoints }: ProjectFacts, now: Date): Findings {
  const { content, count } = endpoints;
  const ofKind = (kind: FailingEndpoint['kind']) => content.filter((it) => it.kind === kind);
  const [open, failing, partly] = [ofKind('open'), ofKind('failing'), ofKind('partly')];
  const requests = (
    subject: string,
    those: readonly FailingEndpoint[],
    all: number,
  ): Found | undefined => {
    const failed = sum(those, 'failure');
    const of = failed + sum(those, 'success');
    return (
      those[0] && [
        those[0].since,
        (since) =>
          `${subject} to ${namesOf(those, all)} fail: ${figure(failed)} of ${figure(of)}${since}.`,
        all,
        those,
      ]
    );
  };
  const waiting = () => upTo(sum(open, 'waiting'), WAITING_MAX * open.length);
  const { inactive_endpoints: inactive, inactive_endpoint: last } = states;
  return {
    breakers_open: open[0]?.breaker && [
      earliest(open.map(({ breaker }) => breaker?.since ?? null)),
      (since) =>
        `Deliveries to ${namesOf(open, count.open)} have failed${since}: ${waiting()} waiting, ${count.open === 1 ? `breaker ${untilOf(open[0]!.breaker!, now)}` : 'breakers open'}.`,
      count.open,
      open,
    ],
    endpoints_inactive: last !== null && [
      states.inactive_since,
      (since) =>
        inactive === 1
          ? `${last.name} has been inactive${since}, and gets no events. ${last.reason ?? ''}`.trim()
          : `${inactive} endpoints are inactive and get no events, the first${since}.`,
      inactive,
      [last],
    ],
    endpoints_failing: requests('Requests', failing, count.failing),
    endpoints_failing_partly: requests('Some requests', partly, count.partly),
  };
}

/** Needs the sources and what agents have reported of them. */
function ofSources({ sources: { conditions, readers } }: ProjectFacts, isKvOk: boolean): Findings {
  const inState = (
    wanted: (typeof conditions)[number]['state'],
    sentence: (those: typeof conditions) => Found[1],
    isSo = true,
  ): Found | false => {
    const those = conditions.filter(({ state }) => state === wanted);
    const since = earliest(those.map((it) => it.since));
    return isSo && those.length > 0 && [since, sentence(those), those.length, those];
  };
  const isRead = readers.ids.length > 0;
  return {
    sources_failing: inState(
      'failing',
      (those) => (since) =>
        those.length === 1
          ? `The source ${those[0]!.name} has been failing${since}. ${those[0]!.reason ?? ''}`.trim()
          : `${those.length} sources cannot be read, the first${since}: ${namesOf(those)}.`,
    ),
    sources_unread: inState(
      'unknown',
      (those) => (since) =>
        `No agent reads ${namesOf(those)}${since}: messages wait with the broker.`,
      !isRead,
    ),
    sources_unknown: inState(
      'unknown',
      (those) => () =>
        `Whether ${namesOf(those)} can be read is unknown: no agent has reported ${those.length === 1 ? 'it' : 'them'} for 30 s.`,
      isRead && isKvOk,
    ),
    sources_paused: inState(
      'paused',
      (those) => (since) =>
        `${those.length === 1 ? `The source ${those[0]!.name} has been paused` : `${those.length} sources are paused, the first`}${since}: messages wait with the broker.`,
    ),
  };
}

/** Most harmful first. */
export function findingsOf(facts: HealthFacts): Finding[] {
  const { now, project, components } = facts;
  const all: Findings = {
    ...ofDependencies(facts),
    ...(project && {
      ...ofStates(project, now),
      ...ofEndpoints(project, now),
      ...ofSources(project, components.kv?.state === 'ok'),
    }),
  };
  return (Object.keys(FINDINGS) as FindingCode[]).flatMap((code) => {
    const found = all[code];
    if (!found) return [];
    const [severity, page] = FINDINGS[code];
    const [since, sentence, count = 1, those] = found;
    const [only] = count === 1 ? (those ?? []) : [];
    const thing = /^\/(\w+)/.exec(page)![1]!;
    return {
      code,
      severity,
      count,
      since,
      sentence: sentence(since ? ` since ${clock(since, now)}` : ''),
      page: only ? `/${thing}/${only.id}` : page,
      action: only ? `Open ${only.name}` : `Show ${thing}`,
    };
  });
}

function sum<Key extends string>(those: readonly Readonly<Record<Key, number>>[], key: Key) {
  return those.reduce((all, it) => all + it[key], 0);
}

function untilOf({ state, until }: BreakerView, now: Date): string {
  return state === 'open' && until && until > now
    ? `open until ${clock(until, now)}`
    : 'open, one request tries it now';
}

function earliest(times: readonly (Date | null)[]): Date | null {
  const known = times.flatMap((it) => (it ? [it.getTime()] : []));
  return known.length === 0 ? null : new Date(Math.min(...known));
}
