import type { Subscription } from '@gateway/client';
import { api, given } from '../../api/client.js';
import type { PageQuery } from '../../api/read.js';
import { Badge } from '../../components/data.js';
import { ButtonLink, NewLink, Page } from '../../components/layout.js';
import { FilterBar } from '../../components/log/filter-bar.js';
import { LiveLog } from '../../components/log/live-log.js';
import type { LogColumn } from '../../components/log/log.js';
import { param, projectHref, projectId } from '../../router/location.js';
import { mayManage } from '../../session/session.js';
import { EndpointFilter } from '../deliveries/delivery-filter.js';
import { endpointNames } from './endpoint-names.js';
import { filterWords } from './filter-words.js';

type ListedSubscription = Subscription & { readonly endpointName: string };

export default function SubscriptionList() {
  const mayCreate = mayManage();
  return (
    <Page
      title="Subscriptions"
      isFull
      actions={mayCreate && <NewLink what="subscription" path="/subscriptions/new" />}
    >
      <FilterBar searchHint="Name" hasTime={false}>
        <EndpointFilter />
      </FilterBar>
      <LiveLog<ListedSubscription>
        label="Subscriptions"
        name={`${projectId.value} subscriptions`}
        columns={columns}
        load={read}
        hrefOf={({ uid }) => projectHref(`/subscriptions/${uid}`)}
      >
        <p>
          A subscription sends events of the selected types that match its filter to an endpoint.
        </p>
        {mayCreate && (
          <ButtonLink kind="main" href={projectHref('/subscriptions/new')}>
            Create subscription
          </ButtonLink>
        )}
      </LiveLog>
    </Page>
  );
}

async function read(page: PageQuery, signal: AbortSignal) {
  const filter = given({ endpointId: param('endpoint'), q: param('search') });
  const list = api().subscriptions.list({ ...page, ...filter }, { signal });
  const { content, pagination } = await list.page();
  const names = await endpointNames(
    content.map(({ endpoint_id: id }) => id),
    signal,
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
