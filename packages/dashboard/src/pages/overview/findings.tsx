import type { EventDelivery, SourceState, Summary } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource, type Resource } from '../../api/read.js';
import { Badge, Table, Time, type TableColumn } from '../../components/data.js';
import { Loaded } from '../../components/feedback.js';
import { Panel } from '../../components/layout.js';
import { compact } from '../../format/number.js';
import { span } from '../../format/time.js';
import { projectHref } from '../../router/location.js';

/** A problem of the project, with a link to the page that shows it. */
export interface Finding {
  readonly tone: 'bad' | 'warn';
  readonly sentence: string;
  /** The path of the page, relative to the project. */
  readonly to: string;
  readonly action: string;
}

/** An event pending for longer than this indicates a backlog. */
const PENDING_SECONDS = 30;
const NAMED = 3;

const things = (count: number, one: string, many: string) =>
  count === 1 ? `One ${one}` : `${compact(count)} ${many}`;

/** Returns the problems of a project, worst first. */
export function findingsOf(
  summary: Summary,
  failing: readonly Failing[],
  states: readonly SourceState[] = [],
): Finding[] {
  const {
    oldest_pending_seconds: oldest,
    pending_events: pending,
    quarantined_messages: quarantined,
    endpoints,
    sources,
  } = summary;
  const unread = states.filter(({ state }) => state === 'failing');
  const found: (Finding | false)[] = [
    oldest !== null &&
      oldest > PENDING_SECONDS && {
        tone: 'bad',
        sentence: `${things(pending, 'event waits', 'events wait')} to be routed, the oldest for ${span(oldest)}: no agent runs, or agents cannot keep up.`,
        to: '/events?status=pending',
        action: 'Pending events',
      },
    endpoints.inactive > 0 && {
      tone: 'bad',
      sentence: `${things(endpoints.inactive, 'endpoint is', 'endpoints are')} inactive: events for ${endpoints.inactive === 1 ? 'it' : 'them'} are not delivered.`,
      to: '/endpoints?status=inactive',
      action: 'Inactive endpoints',
    },
    failing.length > 0 && {
      tone: 'bad',
      sentence: `Deliveries to ${namesOf(failing)} fail. ${failing.length === 1 ? (failing[0]?.newest.reason ?? '') : ''}`,
      to: failing.length === 1 ? `/endpoints/${failing[0]?.uid}` : '/endpoints',
      action: failing.length === 1 ? 'The endpoint' : 'Endpoints',
    },
    unread.length > 0 && {
      tone: 'bad',
      sentence:
        unread.length === 1
          ? `The source ${unread[0]?.name} cannot be read. ${unread[0]?.reason ?? ''}`
          : `${unread.length} sources cannot be read.`,
      to: unread.length === 1 ? `/sources/${unread[0]?.uid}` : '/sources?state=failing',
      action: unread.length === 1 ? 'The source' : 'Failing sources',
    },
    sources.paused > 0 && {
      tone: 'warn',
      sentence: `${things(sources.paused, 'source is', 'sources are')} paused: messages wait with the broker.`,
      to: '/sources?state=paused',
      action: 'Paused sources',
    },
    quarantined > 0 && {
      tone: 'warn',
      sentence: `${things(quarantined, 'message', 'messages')} could not be accepted and ${quarantined === 1 ? 'is' : 'are'} in quarantine.`,
      to: '/quarantine',
      action: 'Quarantine',
    },
    summary.held_deliveries > 0 && {
      tone: 'warn',
      sentence: `${things(summary.held_deliveries, 'delivery is', 'deliveries are')} held for paused endpoints.`,
      to: '/deliveries?status=waiting',
      action: 'Waiting deliveries',
    },
  ];
  return found.filter((it) => it !== false);
}

function namesOf(failing: readonly Failing[]): string {
  const names = failing.slice(0, NAMED).map(({ name }) => name);
  const others = failing.length - names.length;
  const listed = others > 0 ? [...names, `${compact(others)} more`] : names;
  return listed.length === 1
    ? (listed[0] ?? '')
    : `${listed.slice(0, -1).join(', ')} and ${listed.at(-1) ?? ''}`;
}

const LIVE_MS = 5_000;
const RECENT_MS = 15 * 60_000;
const LOOKED_AT = 100;

interface Failing {
  readonly uid: string;
  readonly name: string;
  readonly newest: EventDelivery;
  readonly count: number;
}

/**
 * Returns the endpoints of deliveries that recently failed or are being retried, the most affected
 * first.
 */
export function useFailing(): Resource<readonly Failing[]> {
  return useResource(
    'failing endpoints',
    async (signal) => {
      const startDate = new Date(Date.now() - RECENT_MS).toISOString();
      const list = api().eventDeliveries.list(
        { status: ['retry', 'failure'], startDate, perPage: LOOKED_AT },
        { signal },
      );
      return byEndpoint((await list.page()).content);
    },
    { everyMs: LIVE_MS },
  );
}

export function FailingEndpoints({ failing }: { failing: Resource<readonly Failing[]> }) {
  return (
    <Panel
      title="Endpoints that fail"
      actions={<a href={projectHref('/deliveries?status=failure')}>Failed deliveries</a>}
    >
      <Loaded resource={failing} lines={3}>
        {(rows) =>
          rows.length === 0 ? (
            <p class="muted">No delivery of the last 15 minutes failed or is retried.</p>
          ) : (
            <Table label="Endpoints that fail" rows={rows} columns={columns} />
          )
        }
      </Loaded>
    </Panel>
  );
}

const columns: readonly TableColumn<Failing>[] = [
  {
    name: 'Endpoint',
    cell: ({ uid, name }) => <a href={projectHref(`/endpoints/${uid}`)}>{name}</a>,
  },
  {
    name: 'Status',
    cell: ({ newest }) => <Badge status={newest.endpoint_metadata.status ?? 'unknown'} />,
  },
  {
    name: 'Failed or retried',
    isNumber: true,
    cell: ({ uid, name, count }) => (
      <a
        href={projectHref(`/deliveries?endpoint=${uid}&range=1h`)}
        aria-label={`Deliveries to ${name}: ${count} failed or retried`}
      >
        {count}
      </a>
    ),
  },
  { name: 'Newest reason', cell: ({ newest }) => newest.reason },
  {
    name: 'Newest',
    cell: ({ newest }) => <Time at={newest.updated_at} look="relative" />,
  },
];

/**
 * Groups deliveries, sorted newest first, by endpoint. Returns the endpoint with the most
 * deliveries first.
 */
export function byEndpoint(deliveries: readonly EventDelivery[]): Failing[] {
  const groups = new Map<string, Failing>();
  for (const newest of deliveries) {
    const { uid, name } = newest.endpoint_metadata;
    const known = groups.get(uid) ?? { uid, name: name ?? uid, newest, count: 0 };
    groups.set(uid, { ...known, count: known.count + 1 });
  }
  return [...groups.values()].sort((one, other) => other.count - one.count);
}
