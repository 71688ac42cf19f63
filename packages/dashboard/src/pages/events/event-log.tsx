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
import { eventFilter, SourceFilter, STATUSES } from './event-filter.js';
import { ReplayAll, routeNow } from './replay.js';

export default function EventLog() {
  const [round, setRound] = useState(0);
  return (
    <Page title="Events" isFull actions={<ReplayAll onDone={() => setRound(round + 1)} />}>
      <FilterBar searchHint="Event type, or start of an id">
        <FilterSelect name="status" label="Status" options={STATUSES} />
        <SourceFilter />
      </FilterBar>
      <LiveLog<Event>
        key={round}
        label="Events"
        name="events"
        columns={columns}
        load={(page, signal) =>
          api()
            .events.list({ ...eventFilter(), ...page }, { signal })
            .page()
        }
        hrefOf={({ uid }) => projectHref(`/events/${uid}`)}
        rowKey={{ key: 'r', label: 'Route the row again', run: routeNow }}
      >
        <p>Events come from sources, which read a queue or a topic, or over the API.</p>
        <ButtonLink href={projectHref('/start')}>Deliver a first message</ButtonLink>
      </LiveLog>
    </Page>
  );
}

/** Labels for API outcomes. `routed` needs none. */
const OUTCOMES: Readonly<Record<string, string>> = {
  no_subscription: 'no subscription matches',
  no_endpoints: 'the project has no endpoints',
  unknown_endpoint: 'its endpoint is unknown',
  unknown_owner: 'its owner has no endpoint',
  filter_budget: 'the filters need too many comparisons',
};

const columns: readonly LogColumn<Event>[] = [
  { name: 'Event type', width: 'minmax(8rem, 1.2fr)', cell: ({ event_type: type }) => type },
  { name: 'Status', width: '8rem', cell: (event) => <EventBadge {...event} /> },
  {
    name: 'Remark',
    width: 'minmax(7rem, 1fr)',
    narrow: 'second',
    cell: ({ outcome }) => (
      <span class="muted">
        {outcome && outcome !== 'routed' ? (own(OUTCOMES, outcome) ?? outcome) : ''}
      </span>
    ),
  },
  {
    name: 'From',
    width: 'minmax(7rem, 1.2fr)',
    narrow: 'hidden',
    cell: ({ coordinates }) => (
      <span class="mono muted">{coordinates === 'api' ? 'API' : coordinates}</span>
    ),
  },
  {
    name: 'Size',
    width: '5rem',
    narrow: 'hidden',
    cell: ({ data_bytes: size }) => <span class="number">{bytes(size)}</span>,
  },
  { ...timeColumn('Time', 'occurred_at', 'row'), width: '9rem', narrow: 'second' },
];
