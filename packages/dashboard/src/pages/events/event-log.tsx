import type { Event } from '@gateway/client';
import { api } from '../../api/index.js';
import {
  ButtonLink,
  FilterSelect,
  ListPage,
  type LogColumn,
  messageTime,
  Muted,
} from '../../components/index.js';
import { bytes } from '../../format/number.js';
import { own } from '../../format/text.js';
import { EventBadge } from './event-badge.js';
import { eventFilter, SourceFilter, STATUSES, useSourceNames } from './event-filter.js';
import { ReplayAll, routeNow } from './replay.js';

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
