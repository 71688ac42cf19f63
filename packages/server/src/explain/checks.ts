import type { HealthComponent } from '@gateway/core/process';
import {
  WAITING_MAX,
  type EndpointTrouble,
  type EndpointTroubles,
  type ProjectStates,
} from '@gateway/store/counts';
import type { BreakerView } from '@gateway/store/kv';
import type { MoveState } from '@gateway/store/moves';
import type { ArchiveFailure } from '@gateway/store/retention/archive-first';
import type { SourceConditions } from './source-conditions.js';
import type { FindingCode } from './table.js';
import { clock, figure, span, things, upTo } from './wording.js';

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

/** Its other members are the values of the sentence. */
export interface Evidence {
  readonly since: Date | null;
  /** One by default. */
  readonly count?: number;
  /** The endpoints or sources that it is about, which `{names}` lists. */
  readonly those?: readonly {
    readonly id: string;
    readonly name: string;
    readonly reason?: string | null;
  }[];
  /** Instead of the sentence of the row. */
  readonly sentence?: string | false;
  readonly [value: string]: unknown;
}

export type Checked = Partial<Record<FindingCode, Evidence | false | undefined>>;

/** No agent takes work that waits longer. */
const LATE_SECONDS = 30;

/** Needs what the probes of the process know. */
export function checkDependencies({ components, shard, project }: HealthFacts): Checked {
  const { postgres, migrations, kv, replicas } = components;
  const unknown = inState(project, 'unknown').length;
  return {
    postgres_away: postgres?.state === 'down' && { ...postgres },
    postgres_read_only: postgres?.state === 'degraded' && { ...postgres },
    shard_away: shard && { ...shard },
    migrations_pending: migrations?.state === 'down' &&
      postgres?.state !== 'down' && { ...migrations },
    kv_away: kv &&
      kv.state !== 'ok' && {
        since: kv.since,
        sources: unknown > 0 && ` and of ${things(unknown, 'source')}`,
      },
    replicas_behind: replicas?.state === 'degraded' && { ...replicas },
  };
}

/** Needs the agents and the queues of the project. */
export function checkStates({ states, move, archiveFailure }: ProjectFacts, now: Date): Checked {
  const late = (seconds: number | null, count: number): Evidence | false =>
    seconds !== null &&
    seconds > LATE_SECONDS && {
      since: new Date(now.getTime() - seconds * 1000),
      count,
      age: span(seconds),
    };
  const some = (count: number, since: Date | null) => count > 0 && { count, since };
  return {
    agents_gone: states.agents === 0 && { since: states.agents_until },
    events_waiting: late(states.oldest_pending_seconds, states.pending_events),
    deliveries_late: late(states.oldest_due_seconds, states.due_deliveries),
    project_moving: move && {
      since: move.begun_at,
      from: move.from,
      to: move.to,
      earlier: move.copied_to
        ? `Events from before ${clock(move.copied_to, now)}`
        : 'Earlier events',
      left: move.events_left ? ` (${figure(move.events_left)} left)` : '',
      error: move.error === null ? '.' : `. The last try failed: ${move.error}`,
      sentence:
        move.phase !== 'history' &&
        'The project is moving from the shard {from} to {to}: new events wait{error}',
    },
    keys_parked: some(states.parked_keys, states.parked_since) && {
      count: states.parked_keys,
      since: states.parked_since,
      those: states.parked_endpoint ? [states.parked_endpoint] : [],
      at: states.parked_endpoint ? ` at ${states.parked_endpoint.name}` : '',
    },
    messages_quarantined: some(states.quarantined_messages, states.quarantined_since),
    deliveries_held: some(states.held_deliveries, states.paused_since),
    archive_failing: archiveFailure && {
      since: archiveFailure.since,
      object: archiveFailure.reason.split(' in the archive ')[0],
      sentence:
        archiveFailure.isOfProject &&
        'Expired events of this project have not been archived{since}, and are kept: {object} in the archive cannot be read. The log of the agents has the reason.',
    },
  };
}

/** Needs the breakers and the counted requests. */
export function checkEndpoints({ states, endpoints }: ProjectFacts, now: Date): Checked {
  const { content, count } = endpoints;
  const ofKind = (kind: FailingEndpoint['kind']) => content.filter((it) => it.kind === kind);
  const requests = (kind: FailingEndpoint['kind']): Evidence | undefined => {
    const those = ofKind(kind);
    const failed = sum(those, 'failure');
    const all = figure(failed + sum(those, 'success'));
    return (
      those[0] && {
        since: those[0].since,
        count: count[kind],
        those,
        failed: figure(failed),
        all,
      }
    );
  };
  const open = ofKind('open');
  const { inactive_endpoint: inactive } = states;
  return {
    breakers_open: open[0]?.breaker && {
      since: earliest(open.map(({ breaker }) => breaker?.since ?? null)),
      count: count.open,
      those: open,
      waiting: upTo(sum(open, 'waiting'), WAITING_MAX * open.length),
      until: untilOf(open[0].breaker, now),
    },
    endpoints_inactive: inactive !== null && {
      since: states.inactive_since,
      count: states.inactive_endpoints,
      those: [inactive],
    },
    endpoints_failing: requests('failing'),
    endpoints_failing_partly: requests('partly'),
  };
}

/** Needs the sources and what agents have reported of them. */
export function checkSources(project: ProjectFacts, isKvOk: boolean): Checked {
  const found = (state: Parameters<typeof inState>[1]): Evidence | false => {
    const those = inState(project, state);
    const since = earliest(those.map((it) => it.since));
    return those.length > 0 && { since, count: those.length, those };
  };
  const isRead = project.sources.readers.ids.length > 0;
  return {
    sources_failing: found('failing'),
    sources_unread: !isRead && found('unknown'),
    sources_unknown: isRead && isKvOk && found('unknown'),
    sources_paused: found('paused'),
  };
}

const inState = (
  project: ProjectFacts | undefined,
  wanted: SourceConditions['conditions'][number]['state'],
) => (project?.sources.conditions ?? []).filter(({ state }) => state === wanted);

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
