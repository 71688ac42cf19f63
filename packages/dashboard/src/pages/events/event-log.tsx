import type { Event } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { ButtonLink } from '../../components/layout/button.js';
import { Page } from '../../components/layout/page.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { FilterBar, FilterSelect } from '../log/filter-bar.js';
import { LiveLog } from '../log/live-log.js';
import { columns } from './columns.js';
import { eventFilter, STATUSES } from './event-filter.js';
import { ReplayAll, routeNow } from './replay.js';
import { SourceFilter } from './source-filter.js';

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
        name={`${projectId.value} events`}
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
