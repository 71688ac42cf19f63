import type { Subscription } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Badge, Table } from '../../components/data.js';
import { Loaded } from '../../components/feedback.js';
import { ButtonLink, Panel } from '../../components/layout.js';
import { isPortal, projectHref, projectId } from '../../router/location.js';
import { mayManage } from '../../session/session.js';
import { filterWords } from '../subscriptions/filter-words.js';

const MOST = 100;

export function Subscriptions({ endpointId }: { readonly endpointId: string }) {
  const resource = useResource(`${projectId.value} subscriptions of ${endpointId}`, (signal) =>
    api().subscriptions.list({ endpointId, perPage: MOST }, { signal }).page(),
  );
  return (
    <Panel
      title="Subscriptions"
      actions={
        mayManage() && (
          <ButtonLink href={projectHref(`/subscriptions/new?endpoint=${endpointId}`)}>
            Add subscription
          </ButtonLink>
        )
      }
    >
      <Loaded resource={resource} lines={2}>
        {({ content, pagination }) =>
          content.length === 0 ? (
            <p class="muted">
              {isPortal.value
                ? 'This endpoint has no subscription: it receives only messages that we address to you.'
                : 'No subscriptions. The endpoint receives only events that name it or its owner.'}
            </p>
          ) : (
            <>
              <Table<Subscription> label="Subscriptions" rows={content} columns={columns} />
              {pagination.has_next_page && <p class="muted">Showing the newest {MOST}.</p>}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

const columns = [
  {
    name: 'Name',
    cell: ({ uid, name }: Subscription) => (
      <a href={projectHref(`/subscriptions/${uid}`)}>{name}</a>
    ),
  },
  {
    name: 'State',
    cell: ({ is_disabled: isOff }: Subscription) => (
      <Badge status={isOff ? 'disabled' : 'enabled'} tone={isOff ? 'warn' : 'ok'} />
    ),
  },
  {
    name: 'Event types',
    cell: ({ filter_config: it }: Subscription) => (
      <span class="mono">{it.event_types.join(', ')}</span>
    ),
  },
  {
    name: 'Filter',
    cell: ({ filter_config: { filter } }: Subscription) => (
      <span class="muted">{filterWords(filter)}</span>
    ),
  },
];
