import type { Subscription } from '@gateway/client';
import { api, given, type PageQuery, type ReadOptions } from '../../api/index.js';
import { Badge, ListPage, type LogColumn } from '../../components/index.js';
import { param } from '../../router/location.js';
import { mayManage } from '../../session/session.js';
import { EndpointFilter, endpointNames } from './endpoint-names.js';
import { filterWords } from './subscription-draft.js';

type ListedSubscription = Subscription & { readonly endpointName: string };

export default function SubscriptionList() {
  return (
    <ListPage<ListedSubscription>
      title="Subscriptions"
      creates={mayManage() && 'subscription'}
      searchHint="Name"
      hasTime={false}
      filters={<EndpointFilter />}
      columns={columns}
      load={read}
    >
      <p>A subscription sends events of the selected types that match its filter to an endpoint.</p>
    </ListPage>
  );
}

async function read(page: PageQuery, options: ReadOptions) {
  const filter = given({ endpointId: param('endpoint'), q: param('search') });
  const list = api().subscriptions.list({ ...page, ...filter }, options);
  const { content, pagination } = await list.page();
  const names = await endpointNames(
    content.map(({ endpoint_id: id }) => id),
    options,
  );
  return {
    pagination,
    content: content.map((row) => ({
      ...row,
      endpointName: names.get(row.endpoint_id) ?? row.endpoint_id,
    })),
  };
}

const columns: readonly LogColumn<ListedSubscription>[] = [
  { name: 'Name', width: 'minmax(8rem, 1fr)', cell: ({ name }) => name },
  {
    name: 'State',
    width: '6rem',
    cell: ({ is_disabled: isOff }) => (
      <Badge status={isOff ? 'disabled' : 'enabled'} tone={isOff ? 'warn' : 'ok'} />
    ),
  },
  {
    name: 'Event types',
    width: 'minmax(8rem, 1.4fr)',
    narrow: 'second',
    cell: ({ filter_config: it }) => <span class="mono">{it.event_types.join(', ')}</span>,
  },
  {
    name: 'Filter',
    width: 'minmax(6rem, 1fr)',
    narrow: 'hidden',
    cell: ({ filter_config: { filter } }) => <span class="muted">{filterWords(filter)}</span>,
  },
  {
    name: 'Endpoint',
    width: 'minmax(6rem, 1fr)',
    narrow: 'hidden',
    cell: ({ endpointName }) => endpointName,
  },
];
