import type { EventDelivery } from '@gateway/client';
import { Badge } from '../../components/data/badge.js';
import type { Column } from '../../components/data/log.js';
import { Time } from '../../components/data/time.js';

export const columns: readonly Column<EventDelivery>[] = [
  { name: 'Event type', width: 'minmax(9rem, 1.2fr)', cell: ({ event_metadata: event }) => event.event_type ?? 'unknown' },
  { name: 'Status', width: '6.5rem', cell: ({ status }) => <Badge status={status} /> },
  { name: 'Endpoint', width: 'minmax(8rem, 1fr)', narrow: 'second', cell: ({ endpoint_metadata: it }) => it.name ?? it.uid },
  { name: 'Attempts', width: '5rem', narrow: 'hidden', cell: ({ attempts }) => attempts },
  { name: 'Time', width: '9rem', narrow: 'second', cell: ({ occurred_at: at }) => <Time at={at} look="row" /> },
];
