import type { EventDelivery } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { Badge, Time, timeColumn } from '../../components/data.js';
import { ButtonLink, Page } from '../../components/layout.js';
import { FilterBar, FilterSelect } from '../../components/log/filter-bar.js';
import { LiveLog } from '../../components/log/live-log.js';
import type { LogColumn } from '../../components/log/log.js';
import { isPortal, projectHref } from '../../router/location.js';
import { deliveryFilter, EndpointFilter, STATUSES } from './delivery-filter.js';
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
        name="deliveries"
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

/** Explains in one line why a delivery waits or has ended. */
function Remark({
  row: { reason, next_attempt_at: next, status, endpoint_metadata: endpoint },
}: {
  row: EventDelivery;
}) {
  if (status === 'scheduled' && endpoint.status === 'paused')
    return <>held: the endpoint is paused</>;
  return (
    <>
      {reason}
      {reason && next && ' · '}
      {next && (
        <>
          next attempt <Time at={next} look="relative" />
        </>
      )}
    </>
  );
}

const columns: readonly LogColumn<EventDelivery>[] = [
  {
    name: 'Event type',
    width: 'minmax(8rem, 1.1fr)',
    cell: ({ event_metadata: event }) => event.event_type ?? 'unknown',
  },
  { name: 'Status', width: '6.5rem', cell: ({ status }) => <Badge status={status} /> },
  {
    name: 'Endpoint',
    width: 'minmax(7rem, 0.9fr)',
    narrow: 'second',
    cell: ({ endpoint_metadata: it }) => it.name ?? it.uid,
  },
  {
    name: 'Remark',
    width: 'minmax(8rem, 2fr)',
    narrow: 'hidden',
    cell: (row) => (
      <span class="muted" title={row.reason ?? undefined}>
        <Remark row={row} />
      </span>
    ),
  },
  {
    name: 'Attempts',
    width: '5rem',
    narrow: 'hidden',
    cell: ({ attempts }) => <span class="number">{attempts}</span>,
  },
  { ...timeColumn('Time', 'occurred_at', 'row'), width: '9rem', narrow: 'second' },
];
