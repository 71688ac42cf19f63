import type { QuarantinedMessage } from '@gateway/client';
import { Badge } from '../../components/data/badge.js';
import type { Column } from '../../components/data/log.js';
import { Time } from '../../components/data/time.js';
import { bytes } from '../../format/number.js';
import { reasonOf } from './reasons.js';

export const columns: readonly Column<QuarantinedMessage>[] = [
  { name: 'Reason', width: 'minmax(9rem, 0.9fr)', cell: ({ code }) => reasonOf(code).label },
  { name: 'Status', width: '7rem', cell: ({ status }) => <Badge status={status} /> },
  {
    name: 'What is wrong',
    width: 'minmax(8rem, 3fr)',
    narrow: 'second',
    cell: ({ reason }) => (
      <span class="muted" title={reason}>
        {reason}
      </span>
    ),
  },
  {
    name: 'From',
    width: 'minmax(6rem, 0.9fr)',
    narrow: 'hidden',
    cell: ({ coordinates }) => <span class="mono muted">{coordinates}</span>,
  },
  {
    name: 'Size',
    width: '5rem',
    narrow: 'hidden',
    cell: ({ raw_bytes: size }) => <span class="number">{bytes(size)}</span>,
  },
  {
    name: 'Time',
    width: '9rem',
    narrow: 'second',
    cell: ({ occurred_at: at }) => <Time at={at} look="row" />,
  },
];
