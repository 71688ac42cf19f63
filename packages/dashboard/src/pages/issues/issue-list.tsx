import type { GatewayClient, Issue } from '@gateway/client';
import { api, given } from '../../api/client.js';
import { timeColumn } from '../../components/data.js';
import { Page } from '../../components/layout.js';
import { FilterBar, FilterSelect } from '../../components/log/filter-bar.js';
import { LiveLog } from '../../components/log/live-log.js';
import type { LogColumn } from '../../components/log/log.js';
import { count } from '../../format/number.js';
import { param, projectHref } from '../../router/location.js';
import { EndpointFilter } from '../deliveries/delivery-filter.js';
import { kindWords, StateBadge } from './kind.js';

type IssueQuery = NonNullable<Parameters<GatewayClient['issues']['list']>[0]>;

const STATES = [
  ['', 'Open'],
  ['muted', 'Muted'],
  ['resolved', 'Resolved'],
] as const;

export default function IssueList() {
  return (
    <Page title="Issues" isFull>
      <FilterBar hasTime={false}>
        <FilterSelect name="state" label="State" options={STATES} />
        <EndpointFilter />
      </FilterBar>
      <LiveLog<Issue>
        label="Issues"
        name="issues"
        columns={columns}
        load={(page, signal) => {
          const state = [(param('state') || 'open') as Issue['state']];
          const filter = {
            state,
            ...given({
              endpointId: param('endpoint'),
              sortBy: param('by') as IssueQuery['sortBy'],
            }),
          };
          return api()
            .issues.list({ ...filter, ...page }, { signal })
            .page();
        }}
        hrefOf={({ uid }) => projectHref(`/issues/${uid}`)}
      >
        <p>No endpoint is failing. Failed requests appear here, grouped by endpoint and error.</p>
      </LiveLog>
    </Page>
  );
}

const columns: readonly LogColumn<Issue>[] = [
  { name: 'Error', width: 'minmax(8rem, 1fr)', cell: ({ kind }) => kindWords(kind) },
  { name: 'State', width: '6rem', cell: StateBadge },
  {
    name: 'Endpoint',
    width: 'minmax(7rem, 1fr)',
    narrow: 'second',
    cell: ({ endpoint_name: name }) => name,
  },
  {
    name: 'Latest error',
    width: 'minmax(8rem, 2fr)',
    narrow: 'hidden',
    cell: ({ error }) => (
      <span class="muted" title={error}>
        {error}
      </span>
    ),
  },
  {
    name: 'Failures',
    width: '6rem',
    narrow: 'hidden',
    sort: { by: 'failures' },
    cell: ({ failures }) => <span class="number">{count(failures)}</span>,
  },
  { ...timeColumn('First seen', 'first_seen_at'), width: '8rem', narrow: 'hidden', isOrder: true },
  {
    ...timeColumn('Last seen', 'last_seen_at'),
    width: '8rem',
    narrow: 'second',
    sort: { by: 'last_seen' },
  },
];
