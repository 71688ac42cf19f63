import type { Event } from '@gateway/client';
import { api, given, type ListQuery } from '../../api/index.js';
import {
  BatchButton,
  ButtonLink,
  closedRange,
  FilterSelect,
  ListPage,
  type LogColumn,
  messageTime,
  Muted,
  rangeWords,
  searchOf,
  shownRange,
  toast,
  toastError,
} from '../../components/index.js';
import { bytes } from '../../format/number.js';
import { own } from '../../format/text.js';
import { param } from '../../router/location.js';
import { may } from '../../session/session.js';
import { SourceFilter, useSourceNames } from '../sources/source-names.js';
import { EventBadge } from './event-badge.js';

export default function EventLog() {
  const sources = new Map(useSourceNames().map(([uid, name]) => [uid, name]));
  return (
    <ListPage<Event>
      title="Events"
      actions={<ReplayAll />}
      searchHint="data.order.id = 42, text, or an ID"
      filters={
        <>
          <FilterSelect name="status" label="Status" options={STATUSES} />
          <SourceFilter />
        </>
      }
      columns={columnsOf(sources)}
      load={(page, options) => api().events.list({ ...eventFilter(), ...page }, options)}
      rowKey={{ label: 'Replay the selected event', run: routeNow }}
    >
      <p>Events arrive from sources, which read queues and topics, or over the API.</p>
      <ButtonLink to="/start">Deliver a first message</ButtonLink>
    </ListPage>
  );
}

const OUTCOMES: Readonly<Record<string, string>> = {
  routed: '',
  no_subscription: 'no subscription matches',
  no_endpoints: 'the project has no endpoints',
  unknown_endpoint: 'unknown endpoint',
  unknown_owner: 'the owner has no endpoint',
  filter_budget: 'the filters need too many comparisons',
};

/** @param sources names by id */
function columnsOf(sources: ReadonlyMap<string, string>): readonly LogColumn<Event>[] {
  return [
    { name: 'Event type', width: 'minmax(9rem, 1.4fr)', cell: ({ event_type: type }) => type },
    { name: 'Status', width: '7.5rem', cell: EventBadge },
    {
      name: 'Remark',
      width: 'minmax(8rem, 1.3fr)',
      narrow: 'second',
      cell: ({ outcome }) => <Muted text={own(OUTCOMES, outcome ?? '') ?? outcome} />,
    },
    {
      name: 'Source',
      width: 'minmax(6rem, 1fr)',
      narrow: 'hidden',
      cell: ({ source_id: id, coordinates }) => (
        <span title={coordinates}>{id === null ? 'API' : (sources.get(id) ?? coordinates)}</span>
      ),
    },
    {
      name: 'Owner',
      width: 'minmax(5rem, 0.8fr)',
      narrow: 'hidden',
      cell: ({ owner_id: owner }) => owner,
    },
    {
      name: 'Size',
      width: '4.5rem',
      isNumber: true,
      narrow: 'hidden',
      cell: ({ data_bytes: size }) => bytes(size),
    },
    messageTime,
  ];
}

/** Without confirmation. Endpoints that already have a delivery of the event do not get another. */
function routeNow({ uid, event_type: type }: Event): void {
  api()
    .events.replay(uid)
    .then(() => toast(`Replaying ${type}.`), toastError);
}

function ReplayAll() {
  const { query: idStart, search, sourceId, status, outcome } = eventFilter();
  if (idStart !== undefined || status === 'pending' || !may('member')) return null;
  const words = {
    processed: 'processed events',
    failed: 'failed events',
    any: outcome ? 'events without a recipient' : 'events',
  }[status ?? 'any'];
  return (
    <BatchButton
      label="Replay…"
      title="Replay events"
      words={{
        what: `${words}${search ? ` matching ${search}` : ''}, ${rangeWords()}`,
        action: (count) => `Replay ${count}`,
        done: (count) => `Replayed ${count}`,
      }}
      begin={() => {
        const selection = {
          ...closedRange(),
          ...given({ search, sourceId, status, outcome }),
        };
        return (step, options) => api().events.batchReplay({ ...selection, ...step }, options);
      }}
    />
  );
}

type EventQuery = ListQuery<'events'>;

const STATUSES = [
  ['', 'Any status'],
  ['processed', 'processed'],
  ['failed', 'failed'],
  ['pending', 'pending'],
  ['unrouted', 'no recipient'],
] as const;

const UNROUTED = [
  'no_subscription',
  'no_endpoints',
  'unknown_endpoint',
  'unknown_owner',
  'filter_budget',
] as const;

function eventFilter(): EventQuery {
  const isUnrouted = param('status') === 'unrouted';
  return {
    ...shownRange(),
    ...eventSearch(),
    ...given({
      status: isUnrouted ? '' : (param('status') as NonNullable<EventQuery['status']>),
      outcome: isUnrouted ? UNROUTED : undefined,
      sourceId: param('source'),
    }),
  };
}

/** The start of an id is looked up by its index; the server interprets any other text. */
function eventSearch(): EventQuery {
  const search = param('search').trim();
  const { query } = searchOf(search);
  return given(query === undefined ? { search } : { query });
}
