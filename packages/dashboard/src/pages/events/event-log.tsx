import type { Event } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { timeColumn } from '../../components/data.js';
import { ButtonLink, Page } from '../../components/layout.js';
import { FilterBar, FilterSelect } from '../../components/log/filter-bar.js';
import { LiveLog } from '../../components/log/live-log.js';
import type { LogColumn } from '../../components/log/log.js';
import { bytes } from '../../format/number.js';
import { own } from '../../format/text.js';
import { projectHref } from '../../router/location.js';
import { EventBadge } from './event-badge.js';
import { eventFilter, SourceFilter, STATUSES, useSourceNames } from './event-filter.js';
import { ReplayAll, routeNow } from './replay.js';

export default function EventLog() {
  const [round, setRound] = useState(0);
  const sources = useSourceNames();
  return (
    <Page title="Events" isFull actions={<ReplayAll onDone={() => setRound(round + 1)} />}>
      <FilterBar searchHint="data.order.id = 42, text, or an ID">
        <FilterSelect name="status" label="Status" options={STATUSES} />
        <SourceFilter />
      </FilterBar>
      <LiveLog<Event>
        key={round}
        label="Events"
        name="events"
        columns={columnsOf(new Map(sources.map(([uid, name]) => [uid, name])))}
        load={(page, signal) =>
          api()
            .events.list({ ...eventFilter(), ...page }, { signal })
            .page()
        }
        hrefOf={({ uid }) => projectHref(`/events/${uid}`)}
        rowKey={{ key: 'r', label: 'Replay the selected event', run: routeNow }}
      >
        <p>Events arrive from sources, which read queues and topics, or over the API.</p>
        <ButtonLink href={projectHref('/start')}>Deliver a first message</ButtonLink>
      </LiveLog>
    </Page>
  );
}

/** `routed` needs none. */
const OUTCOMES: Readonly<Record<string, string>> = {
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
    {
      name: 'Status',
      width: '7.5rem',
      cell: (event) => <EventBadge {...event} />,
    },
    {
      name: 'Remark',
      width: 'minmax(8rem, 1.3fr)',
      narrow: 'second',
      cell: ({ outcome }) => {
        const words = outcome && outcome !== 'routed' ? (own(OUTCOMES, outcome) ?? outcome) : '';
        return (
          <span class="muted" title={words}>
            {words}
          </span>
        );
      },
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
    {
      ...timeColumn('Time', 'occurred_at', 'row'),
      width: '8.5rem',
      narrow: 'second',
      isOrder: true,
    },
  ];
}
