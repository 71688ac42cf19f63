import type { Event } from '@gateway/client';
import { useRef, useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { Code } from '../../components/data/code.js';
import { Page } from '../../components/layout/page.js';
import { useShortcuts } from '../../keyboard/use-shortcuts.js';
import { root } from '../../router/location.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { FilterBar, FilterSelect } from '../log/filter-bar.js';
import { LiveLog } from '../log/live-log.js';
import { columns } from './columns.js';
import { eventFilter, STATUSES } from './event-filter.js';
import { ReplayAll, routeNow } from './replay.js';
import { SourceFilter } from './source-filter.js';

export default function EventLog() {
  const focused = useRef<Event | undefined>(undefined);
  const [round, setRound] = useState(0);
  useShortcuts([{ keys: 'r', label: 'Route the row again', run: () => focused.current && routeNow(focused.current) }]);
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
        onRow={(row) => (focused.current = row)}
      >
        <p>
          Events come from sources, which read a queue or a topic, or over the API. Create one, with an API key in <code>GATEWAY_KEY</code>:
        </p>
        <Code isRaw label="Command" text={command()} />
      </LiveLog>
    </Page>
  );
}

function command(): string {
  return `curl ${location.origin}${root}/api/v1/projects/${projectId.value}/events \\
  -H "authorization: Bearer $GATEWAY_KEY" -H 'content-type: application/json' \\
  -d '{"event_type":"order.created","data":{"number":"A-1001"}}'`;
}
