import type { HealthComponent } from '@gateway/core/process';
import {
  WAITING_MAX,
  type EndpointTrouble,
  type EndpointTroubles,
  type ProjectStates,
} from '@gateway/store/counts/health';
import type { BreakerView } from '@gateway/store/kv';
import type { MoveState } from '@gateway/store/moves';
import type { ArchiveFailure } from '@gateway/store/retention/archive-first';
import type { NamedCondition } from './source-conditions.js';
import { clock, figure, namesOf, sinceOf, span, things, upTo } from './wording.js';

/** Worst first. A project takes the severity of its worst finding. */
export const SEVERITIES = ['bad', 'unknown', 'warn'] as const;

/** Requests to it fail, or its breaker is not closed. */
export interface FailingEndpoint extends EndpointTrouble {
  /** Undefined while the breaker is closed or unknown. */
  readonly breaker: BreakerView | undefined;
}

/** Without Postgres, it has no states, endpoints and sources. */
export interface HealthFacts {
  readonly now: Date;
  readonly components: Readonly<
    Partial<
      Record<'postgres' | 'migrations' | 'kv' | 'replicas' | 'shard', Omit<HealthComponent, 'name'>>
    >
  >;
  /** Set if the shard of the project cannot be used; its state is in `components.shard`. */
  readonly shardName?: string | undefined;
  /** The move of the project to another shard that has not ended. */
  readonly move?: MoveState | undefined;
  readonly states: ProjectStates | undefined;
  /** Undefined without an archive, or while it is writable. */
  readonly archiveFailure: ArchiveFailure | undefined;
  readonly endpoints: Pick<EndpointTroubles, 'count'> & {
    readonly content: readonly FailingEndpoint[];
  };
  readonly sources: readonly NamedCondition[];
}

interface Found {
  /** Counted up to `SUMMARY_MAX`. */
  readonly count: number;
  readonly since: Date | null;
  readonly sentence: string;
  /** Where to fix it, relative to the project or, with `/instance`, to the dashboard. */
  readonly page: string;
  readonly action: string;
}

export interface Finding extends Found {
  readonly code: string;
  readonly severity: (typeof SEVERITIES)[number];
}

type FindingRow = readonly [
  code: string,
  severity: Finding['severity'],
  /** A few words for the project's verdict. */
  headline: (count: number) => string,
  find: (facts: HealthFacts) => Found | false | undefined,
];

/** No agent takes work that waits longer. */
const LATE_SECONDS = 30;

/** Most harmful first. */
export const findingRows: readonly FindingRow[] = [
  [
    'postgres_away',
    'bad',
    () => 'Postgres does not answer',
    ({ components: { postgres }, now }) =>
      postgres?.state === 'down' && {
        ...once(postgres.since),
        sentence: `Postgres has not answered since ${clock(postgres.since, now)}: nothing is accepted or delivered, and other states are unknown.`,
        ...INSTANCE,
      },
  ],
  [
    'postgres_read_only',
    'bad',
    () => 'Postgres accepts no writes',
    ({ components: { postgres }, now }) =>
      postgres?.state === 'degraded' && {
        ...once(postgres.since),
        sentence: `Postgres has accepted no writes since ${clock(postgres.since, now)}: nothing is accepted or delivered.`,
        ...INSTANCE,
      },
  ],
  [
    'shard_away',
    'bad',
    () => 'The shard of the project cannot be used',
    ({ components: { shard }, shardName, now }) =>
      shard && {
        ...once(shard.since),
        sentence: `The shard ${shardName} has not been usable since ${clock(shard.since, now)}: events of this project on it are not accepted, shown or delivered.`,
        ...INSTANCE,
      },
  ],
  [
    'migrations_pending',
    'bad',
    () => 'The database lacks migrations',
    ({ components: { migrations, postgres } }) =>
      migrations?.state === 'down' &&
      postgres?.state !== 'down' && {
        ...once(migrations.since),
        sentence: `The database lacks migrations: ${migrations.reason ?? 'run `gateway migrate up`'}.`,
        ...INSTANCE,
      },
  ],
  [
    'agents_gone',
    'bad',
    () => 'No agent is running',
    ({ states, now }) =>
      states?.agents === 0 && {
        ...once(states.agents_until),
        sentence: `No agent is running${sinceOf(states.agents_until, now)}: nothing is routed or delivered.`,
        ...INSTANCE,
      },
  ],
  [
    'events_waiting',
    'bad',
    (count) => things(count, 'event waits to be routed', 'events wait to be routed'),
    ({ states, now }) =>
      late(states?.oldest_pending_seconds) && {
        count: states!.pending_events,
        since: before(now, states!.oldest_pending_seconds!),
        sentence: `${things(states!.pending_events, 'event waits', 'events wait')} to be routed, the oldest for ${span(states!.oldest_pending_seconds!)}.`,
        page: '/events?status=pending',
        action: 'Pending events',
      },
  ],
  [
    'deliveries_late',
    'bad',
    (count) => things(count, 'delivery is late', 'deliveries are late'),
    ({ states, now }) =>
      late(states?.oldest_due_seconds) && {
        count: states!.due_deliveries,
        since: before(now, states!.oldest_due_seconds!),
        sentence: `${things(states!.due_deliveries, 'delivery is', 'deliveries are')} due and not sent, the oldest for ${span(states!.oldest_due_seconds!)}.`,
        page: '/deliveries?status=waiting',
        action: 'Waiting deliveries',
      },
  ],
  [
    'breakers_open',
    'bad',
    endpointsFail,
    ({ endpoints, now }) => {
      const open = endpoints.content.filter(({ kind }) => kind === 'open');
      const count = endpoints.count.open;
      const [first] = open;
      if (!first?.breaker) return undefined;
      const waiting = `${upTo(sum(open, 'waiting'), WAITING_MAX * open.length)} waiting`;
      const since = earliest(open.map(({ breaker }) => breaker?.since ?? null));
      return {
        count,
        since,
        sentence: `Deliveries to ${namesOf(open, count)} have failed${sinceOf(since, now)}: ${waiting}, ${count === 1 ? `breaker ${untilOf(first.breaker, now)}` : 'breakers open'}.`,
        ...endpointPage(open, count, '/endpoints?breaker=open'),
      };
    },
  ],
  [
    'endpoints_inactive',
    'bad',
    (count) => things(count, 'endpoint is inactive', 'endpoints are inactive'),
    ({ states, now }) => {
      const { inactive_endpoints: count = 0, inactive_endpoint: it } = states ?? {};
      if (count === 0 || !it) return undefined;
      const since = states!.inactive_since;
      return {
        count,
        since,
        sentence:
          count === 1
            ? `${it.name} has been inactive${sinceOf(since, now)}, and gets no events. ${it.reason ?? ''}`.trim()
            : `${count} endpoints are inactive and get no events, the first${sinceOf(since, now)}.`,
        ...endpointPage([it], count, '/endpoints?status=inactive'),
      };
    },
  ],
  ['endpoints_failing', 'bad', endpointsFail, (facts) => requestsFail(facts, 'failing')],
  [
    'sources_failing',
    'bad',
    (count) => things(count, 'source cannot be read', 'sources cannot be read'),
    ({ sources, now }) => {
      const failing = sources.filter(({ state }) => state === 'failing');
      const since = earliest(failing.map((it) => it.since));
      return (
        failing.length > 0 && {
          count: failing.length,
          since,
          sentence:
            failing.length === 1
              ? `The source ${failing[0]!.name} has been failing${sinceOf(since, now)}. ${failing[0]!.reason ?? ''}`.trim()
              : `${failing.length} sources cannot be read, the first${sinceOf(since, now)}: ${namesOf(failing)}.`,
          ...sourcePage(failing, 'failing'),
        }
      );
    },
  ],
  [
    'sources_unread',
    'bad',
    () => 'No agent reads sources',
    ({ sources, states, now }) => {
      const unread = sources.filter(({ state }) => state === 'unknown');
      return (
        states?.readers.length === 0 &&
        unread.length > 0 && {
          count: unread.length,
          since: states.readers_until,
          sentence: `No agent reads ${namesOf(unread)}${sinceOf(states.readers_until, now)}: messages wait with the broker.`,
          ...sourcePage(unread, 'unknown'),
        }
      );
    },
  ],
  [
    'kv_away',
    'unknown',
    () => 'Redis does not answer',
    ({ components: { kv }, sources, now }) => {
      if (!kv || kv.state === 'ok') return undefined;
      const unknown = sources.filter(({ state }) => state === 'unknown').length;
      return {
        ...once(kv.since),
        sentence: `Redis has not answered since ${clock(kv.since, now)}: the states of circuit breakers${unknown === 0 ? '' : ` and of ${things(unknown, 'source', 'sources')}`} are unknown.`,
        ...INSTANCE,
      };
    },
  ],
  [
    'sources_unknown',
    'unknown',
    (count) => `The state of ${things(count, 'source', 'sources')} is unknown`,
    ({ sources, states, components: { kv } }) => {
      const unknown = sources.filter(({ state }) => state === 'unknown');
      return (
        unknown.length > 0 &&
        states?.readers.length !== 0 &&
        kv?.state === 'ok' && {
          count: unknown.length,
          since: null,
          sentence: `Whether ${namesOf(unknown)} can be read is unknown: no agent has reported ${unknown.length === 1 ? 'it' : 'them'} for 30 s.`,
          ...sourcePage(unknown, 'unknown'),
        }
      );
    },
  ],
  [
    'endpoints_failing_partly',
    'warn',
    (count) => `Some requests to ${things(count, 'endpoint', 'endpoints')} fail`,
    (facts) => requestsFail(facts, 'partly'),
  ],
  [
    'replicas_behind',
    'warn',
    () => 'A read replica is away or behind',
    ({ components: { replicas }, now }) =>
      replicas?.state === 'degraded' && {
        ...once(replicas.since),
        sentence: `A read replica has been left out since ${clock(replicas.since, now)}: ${replicas.reason}.`,
        ...INSTANCE,
      },
  ],
  [
    'project_moving',
    'warn',
    () => 'The project is being moved to another shard',
    ({ move, now }) =>
      move && {
        ...once(move.begun_at),
        sentence: `${movedWords(move, now)}${move.error === null ? '.' : `. The last try failed: ${move.error}`}`,
        ...INSTANCE,
      },
  ],
  [
    'sources_paused',
    'warn',
    (count) => things(count, 'source is paused', 'sources are paused'),
    ({ sources, now }) => {
      const paused = sources.filter(({ state }) => state === 'paused');
      const since = earliest(paused.map((it) => it.since));
      return (
        paused.length > 0 && {
          count: paused.length,
          since,
          sentence: `${paused.length === 1 ? `The source ${paused[0]!.name} has been paused` : `${paused.length} sources are paused, the first`}${sinceOf(since, now)}: messages wait with the broker.`,
          ...sourcePage(paused, 'paused'),
        }
      );
    },
  ],
  [
    'messages_quarantined',
    'warn',
    (count) => things(count, 'message is in quarantine', 'messages are in quarantine'),
    ({ states, now }) => {
      const count = states?.quarantined_messages ?? 0;
      return (
        count > 0 && {
          count,
          since: states!.quarantined_since,
          sentence: `${things(count, 'message', 'messages')} could not be accepted: in quarantine${count === 1 ? '' : ', the first'}${sinceOf(states!.quarantined_since, now)}.`,
          page: '/quarantine',
          action: 'Quarantine',
        }
      );
    },
  ],
  [
    'deliveries_held',
    'warn',
    (count) => things(count, 'delivery is held', 'deliveries are held'),
    ({ states, now }) => {
      const count = states?.held_deliveries ?? 0;
      return (
        count > 0 && {
          count,
          since: states!.paused_since,
          sentence: `${things(count, 'delivery is', 'deliveries are')} held for endpoints paused${sinceOf(states!.paused_since, now)}.`,
          page: '/endpoints?status=paused',
          action: 'Paused endpoints',
        }
      );
    },
  ],
  [
    'archive_failing',
    'warn',
    () => 'The archive cannot be written',
    ({ archiveFailure: it, now }) =>
      it && {
        ...once(it.since),
        sentence: it.isOfProject
          ? `Expired events of this project have not been archived since ${clock(it.since, now)}, and are kept: ${it.reason.split(' in the archive ')[0]} in the archive cannot be read. The log of the agents has the reason.`
          : `The archive has not been writable since ${clock(it.since, now)}: expired events are kept and fill the disk of Postgres, until it can be written or archive.give_up_before lets go of them. The log of the agents has the reason.`,
        ...INSTANCE,
      },
  ],
];

/** Most harmful first. */
export function findingsOf(facts: HealthFacts): Finding[] {
  return findingRows.flatMap(([code, severity, , find]) => {
    const found = find(facts);
    return found ? [{ code, severity, ...found }] : [];
  });
}

/** The worst finding, and how many more there are. */
export function verdictOf([worst, ...others]: readonly [Finding, ...Finding[]]): string {
  const [, , headline] = findingRows.find(([code]) => code === worst.code)!;
  const more =
    others.length === 0 ? '' : `, and ${things(others.length, 'more problem', 'more problems')}`;
  return `${headline(worst.count)}${more}.`;
}

const INSTANCE = { page: '/instance', action: 'Instance' } as const;
const once = (since: Date | null) => ({ count: 1, since });

function endpointsFail(count: number): string {
  return things(count, 'endpoint is failing', 'endpoints are failing');
}

function requestsFail(
  { endpoints, now }: HealthFacts,
  part: 'failing' | 'partly',
): Found | undefined {
  const those = endpoints.content.filter(({ kind }) => kind === part);
  const [first] = those;
  if (!first) return undefined;
  const failed = sum(those, 'failure');
  const all = failed + sum(those, 'success');
  const [subject, count] = [
    part === 'failing' ? 'Requests' : 'Some requests',
    endpoints.count[part],
  ];
  return {
    count,
    since: first.since,
    sentence: `${subject} to ${namesOf(those, count)} fail: ${figure(failed)} of ${figure(all)} since ${clock(first.since, now)}.`,
    ...endpointPage(those, count, '/endpoints'),
  };
}

/** Says what is missing while a project is moved. */
function movedWords(move: MoveState, now: Date): string {
  const { phase, from, to, events_left: left, copied_to: at } = move;
  if (phase !== 'history')
    return `The project is moving from the shard ${from} to ${to}: new events wait`;
  const which = at ? `Events from before ${clock(at, now)}` : 'Earlier events';
  return `${which} are still on the shard ${from}${left ? ` (${figure(left)} left)` : ''}, are not listed or counted, and their deliveries wait`;
}

interface Named {
  readonly id: string;
  readonly name: string;
}

const endpointPage = (those: readonly Named[], count: number, list: string) =>
  count === 1
    ? { page: `/endpoints/${those[0]!.id}`, action: `Open ${those[0]!.name}` }
    : { page: list, action: 'Endpoints' };

const sourcePage = (those: readonly Named[], state: string) =>
  those.length === 1
    ? { page: `/sources/${those[0]!.id}`, action: `Open ${those[0]!.name}` }
    : { page: `/sources?state=${state}`, action: 'Sources' };

const late = (seconds: number | null | undefined) => (seconds ?? 0) > LATE_SECONDS;
const before = (now: Date, seconds: number) => new Date(now.getTime() - seconds * 1000);

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
