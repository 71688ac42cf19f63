import type { EventDelivery } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { ButtonLink } from '../../components/layout/button.js';
import { Page } from '../../components/layout/page.js';
import { isPortal, projectHref, projectId } from '../../router/project-path.js';
import { FilterBar, FilterSelect } from '../log/filter-bar.js';
import { LiveLog } from '../log/live-log.js';
import { columns } from './columns.js';
import { deliveryFilter, STATUSES } from './delivery-filter.js';
import { EndpointFilter } from './endpoint-filter.js';
import { ResendAll, resendNow } from './resend.js';

export default function DeliveryLog() {
  const [round, setRound] = useState(0);
  return (
    <Page title="Deliveries" isFull actions={<ResendAll onDone={() => setRound(round + 1)} />}>
      <FilterBar searchHint={isPortal.value ? 'Start of an id' : 'Event type, or start of an id'}>
        <FilterSelect name="status" label="Status" options={STATUSES} />
        <EndpointFilter />
      </FilterBar>
      <LiveLog<EventDelivery>
        key={round}
        label="Deliveries"
        name={`${projectId.value} deliveries`}
        columns={columns}
        load={(page, signal) =>
          api()
            .eventDeliveries.list({ ...deliveryFilter(), ...page }, { signal })
            .page()
        }
        hrefOf={({ uid }) => projectHref(`/deliveries/${uid}`)}
        rowKey={{ key: 'r', label: 'Send the row again', run: resendNow }}
      >
        <p>
          A delivery is made for each endpoint that an event goes to. They appear here while they
          happen.
        </p>
        {!isPortal.value && (
          <ButtonLink href={projectHref('/events')}>Look at the events</ButtonLink>
        )}
      </LiveLog>
    </Page>
  );
}
