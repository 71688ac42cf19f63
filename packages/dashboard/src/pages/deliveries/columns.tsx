import type { EventDelivery } from '@gateway/client';
import { Badge } from '../../components/data/badge.js';
import type { Column } from '../../components/data/log.js';
import { Time } from '../../components/data/time.js';

/** One line: why a delivery waits or has ended. */
function Remark({
  row: { reason, next_attempt_at: next, status, endpoint_metadata: endpoint },
}: {
  readonly row: EventDelivery;
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

export const columns: readonly Column<EventDelivery>[] = [
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
  {
    name: 'Time',
    width: '9rem',
    narrow: 'second',
    cell: ({ occurred_at: at }) => <Time at={at} look="row" />,
  },
];
