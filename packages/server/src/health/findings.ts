import type { HealthComponent } from '@gateway/core/process';
import { SUMMARY_MAX } from '@gateway/store/counts/activity';
import {
  WAITING_MAX,
  type EndpointTrouble,
  type EndpointTroubles,
  type ProjectStates,
} from '@gateway/store/counts/health';
import type { BreakerView } from '@gateway/store/kv';
import type { NamedCondition } from './source-conditions.js';

/** The worst of these in this order determines the state of a project. */
export const SEVERITIES = ['bad', 'unknown', 'warn'] as const;

/** An endpoint with failed requests or a breaker that is not closed. */
export interface FailingEndpoint extends EndpointTrouble {
  /** Undefined while the breaker is closed, or not known. */
  readonly breaker: BreakerView | undefined;
}

/** The facts that findings follow from. Without Postgres, it has no states, endpoints and sources. */
export interface HealthFacts {
  readonly now: Date;
  readonly components: Readonly<
    Partial<Record<'postgres' | 'migrations' | 'kv', Omit<HealthComponent, 'name'>>>
  >;
  readonly states: ProjectStates | undefined;
  readonly endpoints: Pick<EndpointTroubles, 'count'> & {
    readonly content: readonly FailingEndpoint[];
  };
  readonly sources: readonly NamedCondition[];
}

interface Found {
  /** The number of things concerned, counted up to `SUMMARY_MAX`. */
  readonly count: number;
  readonly since: Date | null;
  readonly sentence: string;
  /** The page to fix it on, relative to the project or, with `/instance`, to the dashboard. */
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
  find: (facts: HealthFacts) => Found | false | undefined,
];

/** Work that waits for longer than this has no agent that takes it. */
const LATE_SECONDS = 30;
const NAMED = 3;

/** The findings in order of harm. */
const rows: readonly FindingRow[] = [
  [
    'postgres_away',
    'bad',
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
    ({ components: { postgres }, now }) =>
      postgres?.state === 'degraded' && {
        ...once(postgres.since),
        sentence: `Postgres has accepted no writes since ${clock(postgres.since, now)}: nothing is accepted or delivered.`,
        ...INSTANCE,
      },
  ],
  [
    'migrations_pending',
    'bad',
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
    ({ endpoints, now }) => {
      const open = endpoints.content.filter(({ kind }) => kind === 'open');
      const count = endpoints.count.open;
      const [first] = open;
      if (!first?.breaker) return undefined;
      const waiting = `${upTo(sum(open, 'waiting'), WAITING_MAX * open.length)} waiting`;
      return {
        count,
        since: earliest(open.map(({ breaker }) => breaker?.since ?? null)),
        sentence: `Deliveries to ${namesOf(open, count)} fail: ${waiting}, ${count === 1 ? `breaker ${untilOf(first.breaker, now)}` : 'breakers open'}.`,
        ...endpointPage(open, count, '/endpoints?breaker=open'),
      };
    },
  ],
  [
    'endpoints_inactive',
    'bad',
    ({ states }) => {
      const { inactive_endpoints: count = 0, inactive_endpoint: it } = states ?? {};
      if (count === 0 || !it) return undefined;
      return {
        count,
        since: states!.inactive_since,
        sentence:
          count === 1
            ? `${it.name} is inactive, and events for it are not delivered. ${it.reason ?? ''}`.trim()
            : `${count} endpoints are inactive, and events for them are not delivered.`,
        ...endpointPage([it], count, '/endpoints?status=inactive'),
      };
    },
  ],
  ['endpoints_failing', 'bad', (facts) => requestsFail(facts, 'failing')],
  [
    'sources_failing',
    'bad',
    ({ sources }) => {
      const failing = sources.filter(({ state }) => state === 'failing');
      return (
        failing.length > 0 && {
          count: failing.length,
          since: earliest(failing.map(({ since }) => since)),
          sentence:
            failing.length === 1
              ? `The source ${failing[0]!.name} cannot be read. ${failing[0]!.reason ?? ''}`.trim()
              : `${failing.length} sources cannot be read: ${namesOf(failing)}.`,
          ...sourcePage(failing, 'failing'),
        }
      );
    },
  ],
  [
    'sources_unread',
    'bad',
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
  ['endpoints_failing_partly', 'warn', (facts) => requestsFail(facts, 'partly')],
  [
    'sources_paused',
    'warn',
    ({ sources }) => {
      const paused = sources.filter(({ state }) => state === 'paused');
      return (
        paused.length > 0 && {
          count: paused.length,
          since: earliest(paused.map(({ since }) => since)),
          sentence: `${paused.length === 1 ? `The source ${paused[0]!.name} is` : `${paused.length} sources are`} paused: messages wait with the broker.`,
          ...sourcePage(paused, 'paused'),
        }
      );
    },
  ],
  [
    'messages_quarantined',
    'warn',
    ({ states }) => {
      const count = states?.quarantined_messages ?? 0;
      return (
        count > 0 && {
          count,
          since: states!.quarantined_since,
          sentence: `${things(count, 'message', 'messages')} could not be accepted and ${count === 1 ? 'is' : 'are'} in quarantine.`,
          page: '/quarantine',
          action: 'Quarantine',
        }
      );
    },
  ],
  [
    'deliveries_held',
    'warn',
    ({ states }) => {
      const count = states?.held_deliveries ?? 0;
      return (
        count > 0 && {
          count,
          since: states!.paused_since,
          sentence: `${things(count, 'delivery is', 'deliveries are')} held for paused endpoints.`,
          page: '/endpoints?status=paused',
          action: 'Paused endpoints',
        }
      );
    },
  ],
];

/** Returns what is wrong or unknown, in order of harm. */
export function findingsOf(facts: HealthFacts): Finding[] {
  return rows.flatMap(([code, severity, find]) => {
    const found = find(facts);
    return found ? [{ code, severity, ...found }] : [];
  });
}

const INSTANCE = { page: '/instance', action: 'Instance' } as const;
const once = (since: Date | null) => ({ count: 1, since });

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

/** Returns the first names, and how many more there are of `count`. */
function namesOf(those: readonly Named[], count = those.length): string {
  const names = those.slice(0, NAMED).map(({ name }) => name);
  const others = count - names.length;
  const listed = others > 0 ? [...names, `${figure(others)} more`] : names;
  return listed.length === 1
    ? listed[0]!
    : `${listed.slice(0, -1).join(', ')} and ${listed.at(-1)}`;
}

const figure = (count: number) => count.toLocaleString('en-US');
const upTo = (count: number, max: number) => `${figure(count)}${count >= max ? '+' : ''}`;
const things = (count: number, one: string, many: string) =>
  `${upTo(count, SUMMARY_MAX)} ${count === 1 ? one : many}`;
const late = (seconds: number | null | undefined) => (seconds ?? 0) > LATE_SECONDS;
const before = (now: Date, seconds: number) => new Date(now.getTime() - seconds * 1000);
const sinceOf = (since: Date | null, now: Date) => (since ? ` since ${clock(since, now)}` : '');

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

const DAY_MS = 86_400_000;

/** Returns a time in UTC, such as `12:04 UTC`, with the date unless it is within a day of `now`. */
export function clock(at: Date, now: Date): string {
  const iso = at.toISOString();
  const isNear = Math.abs(at.getTime() - now.getTime()) < DAY_MS;
  return `${isNear ? iso.slice(11, 16) : iso.slice(0, 16).replace('T', ' ')} UTC`;
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
] as const;

/** Returns seconds in the largest unit that fits, such as `45 s` or `3 min`. */
function span(seconds: number): string {
  const [name, size] = UNITS.find(([, size]) => seconds >= size) ?? ['s', 1];
  return `${Math.floor(seconds / size)} ${name}`;
}
