import type { Issue } from '@gateway/client';
import { api, given, type ListQuery } from '../../api/index.js';
import { FilterSelect, ListPage, type LogColumn, Muted, timeCell } from '../../components/index.js';
import { count } from '../../format/number.js';
import { param } from '../../router/location.js';
import { EndpointFilter } from '../subscriptions/endpoint-names.js';
import { kindWords, StateBadge } from './kind.js';

type IssueQuery = ListQuery<'issues'>;

const STATES = [
  ['', 'Open'],
  ['muted', 'Muted'],
  ['resolved', 'Resolved'],
] as const;

export default function IssueList() {
  return (
    <ListPage<Issue>
      title="Issues"
      hasTime={false}
      filters={
        <>
          <FilterSelect name="state" label="State" options={STATES} />
          <EndpointFilter />
        </>
      }
      columns={columns}
      load={(page, options) => {
        const state = [(param('state') || 'open') as Issue['state']];
        const sortBy = param('by') as IssueQuery['sortBy'];
        const filter = given({ endpointId: param('endpoint'), sortBy });
        return api().issues.list({ state, ...filter, ...page }, options);
      }}
    >
      <p>No endpoint is failing. Failed requests appear here, grouped by endpoint and error.</p>
    </ListPage>
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
    cell: ({ error }) => <Muted text={error} />,
  },
  {
    name: 'Failures',
    width: '6rem',
    narrow: 'hidden',
    sort: { by: 'failures' },
    cell: ({ failures }) => <span class="number">{count(failures)}</span>,
  },
  {
    name: 'First seen',
    ...timeCell('first_seen_at'),
    width: '8rem',
    narrow: 'hidden',
    isOrder: true,
  },
  {
    name: 'Last seen',
    ...timeCell('last_seen_at'),
    width: '8rem',
    narrow: 'second',
    sort: { by: 'last_seen' },
  },
];
