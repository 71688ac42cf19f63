import type { Event } from '@gateway/client';
import { Badge } from '../../components/data/badge.js';
import type { Column } from '../../components/data/log.js';
import { Time } from '../../components/data/time.js';
import { bytes } from '../../format/number.js';
import { own } from '../../format/own.js';

/** Labels of the API's outcomes; `routed` needs none. */
const OUTCOMES: Readonly<Record<string, string>> = {
  no_subscription: 'no subscription matches',
  no_endpoints: 'the project has no endpoints',
  unknown_endpoint: 'its endpoint is unknown',
  unknown_owner: 'its owner has no endpoint',
  filter_budget: 'the filters need too many comparisons',
};

export const columns: readonly Column<Event>[] = [
  { name: 'Event type', width: 'minmax(8rem, 1.2fr)', cell: ({ event_type: type }) => type },
  { name: 'Status', width: '6.5rem', cell: ({ status }) => <Badge status={status} /> },
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
  {
    name: 'Time',
    width: '9rem',
    narrow: 'second',
    cell: ({ occurred_at: at }) => <Time at={at} look="row" />,
  },
];
