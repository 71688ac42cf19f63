import type { Endpoint } from '@gateway/client';
import { api, given, type ListQuery, type PageQuery, type ReadOptions } from '../../api/index.js';
import {
  anyOf,
  Badge,
  FilterSelect,
  ListPage,
  type LogColumn,
  Muted,
  Time,
} from '../../components/index.js';
import { compact, percent } from '../../format/number.js';
import { isPortal, param } from '../../router/location.js';
import { mayManage } from '../../session/session.js';
import { attemptsOf, shareOf, stateOf, type Attempts } from './state.js';

/** API states of the circuit breaker, joined with commas. */
const BREAKERS = [
  ['', 'Any circuit breaker'],
  ['open,half_open', 'breaker open'],
  ['closed', 'breaker closed'],
] as const;

type BreakerState = NonNullable<Endpoint['circuit_breaker']>['state'];
type EndpointQuery = ListQuery<'endpoints'>;
type ListedEndpoint = Endpoint & {
  readonly attempts: (Attempts & { readonly last_at: string }) | undefined;
};

export default function EndpointList() {
  return (
    <ListPage<ListedEndpoint>
      title="Endpoints"
      creates={mayManage() && 'endpoint'}
      searchHint={isPortal.value ? 'Name or URL' : 'Name, URL or owner'}
      hasTime={false}
      filters={
        <>
          <FilterSelect
            name="status"
            label="Status"
            options={anyOf('Any status', ['active', 'paused', 'inactive'])}
          />
          {!isPortal.value && (
            <FilterSelect name="breaker" label="Circuit breaker" options={BREAKERS} />
          )}
        </>
      }
      columns={isPortal.value ? columns.filter(({ name }) => name !== 'Owner') : columns}
      load={read}
    >
      <p>
        {isPortal.value
          ? 'An endpoint is a URL of your server. We post a signed message to it when something happens that you subscribe to.'
          : 'An endpoint is a URL that receives the events of its subscriptions. Requests are signed, and failed requests are retried.'}
      </p>
    </ListPage>
  );
}

async function read(page: PageQuery, options: ReadOptions) {
  const breaker = param('breaker');
  const filter = given({
    status: param('status') as Endpoint['status'],
    circuitBreaker: breaker ? (breaker.split(',') as BreakerState[]) : undefined,
    q: param('search'),
    sortBy: param('by') as EndpointQuery['sortBy'],
  });
  const list = api().endpoints.list({ ...page, ...filter }, options);
  const { content, pagination } = await list.page();
  const attempts = await attemptsOf(
    content.map(({ uid }) => uid),
    options,
  );
  return {
    pagination,
    content: content.map((row) => ({ ...row, attempts: attempts.get(row.uid) })),
  };
}

const columns: readonly LogColumn<ListedEndpoint>[] = [
  {
    name: 'Name',
    width: 'minmax(9rem, 1.5fr)',
    cell: ({ name }) => name,
    sort: { by: 'name', isUp: true },
  },
  { name: 'State', width: '7.5rem', cell: (row) => <State row={row} /> },
  {
    name: 'Accepted, 24 h',
    width: '8.5rem',
    narrow: 'hidden',
    sort: { by: 'failures', label: 'failed requests' },
    cell: ({ attempts }) => <Share attempts={attempts} />,
  },
  {
    name: 'Last request',
    width: '7.5rem',
    narrow: 'hidden',
    sort: { by: 'last_request' },
    cell: ({ attempts }) => attempts && <Time at={attempts.last_at} look="relative" />,
  },
  {
    name: 'URL',
    width: 'minmax(10rem, 2fr)',
    narrow: 'second',
    cell: ({ url }) => (
      <span class="mono muted" title={url}>
        {url}
      </span>
    ),
  },
  {
    name: 'Owner',
    width: 'minmax(6rem, 0.9fr)',
    narrow: 'hidden',
    cell: ({ owner_id: owner }) => owner,
  },
  {
    name: 'Remark',
    width: 'minmax(7rem, 1fr)',
    narrow: 'hidden',
    cell: (row) => <Remark row={row} />,
  },
];

function State({ row }: { row: ListedEndpoint }) {
  const { label, tone } = stateOf(row, row.attempts);
  return <Badge status={label} tone={tone} />;
}

function Share({ attempts }: { attempts: Attempts | undefined }) {
  const share = shareOf(attempts);
  if (share === undefined || !attempts) return <span class="muted">no requests</span>;
  return (
    <span class="number">
      {percent(share)} <span class="muted">of {compact(attempts.success + attempts.failure)}</span>
    </span>
  );
}

function Remark({ row }: { row: ListedEndpoint }) {
  const { until, sentence } = stateOf(row, row.attempts);
  const reason = isPortal.value
    ? row.status === 'inactive'
      ? sentence
      : undefined
    : (row.status_reason ?? undefined);
  if (!until) return <Muted text={reason} />;
  return (
    <span class="muted" title={reason}>
      next try <Time at={until} look="relative" />
    </span>
  );
}
