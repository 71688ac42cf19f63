import type { EventDelivery } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource, type Resource } from '../../api/use-resource.js';
import { Badge } from '../../components/data/badge.js';
import { Table } from '../../components/data/table.js';
import { Time } from '../../components/data/time.js';
import { Loaded } from '../../components/feedback/loading.js';
import { Panel } from '../../components/layout/panel.js';
import { projectHref, projectId } from '../../router/project-path.js';

const LIVE_MS = 5_000;
const RECENT_MS = 15 * 60_000;
const LOOKED_AT = 100;

export interface Failing {
  readonly uid: string;
  readonly name: string;
  readonly newest: EventDelivery;
  readonly count: number;
}

/** Endpoints of recently failed or retried deliveries, the most affected first. */
export function useFailing(): Resource<readonly Failing[]> {
  return useResource(
    `${projectId.value} failing endpoints`,
    async (signal) => {
      const startDate = new Date(Date.now() - RECENT_MS).toISOString();
      const list = api().eventDeliveries.list(
        { status: ['retry', 'failure'], startDate, perPage: LOOKED_AT },
        { signal },
      );
      return byEndpoint((await list.page()).content);
    },
    { everyMs: LIVE_MS },
  );
}

export function FailingEndpoints({ failing }: { readonly failing: Resource<readonly Failing[]> }) {
  return (
    <Panel
      title="Endpoints that fail"
      actions={<a href={projectHref('/deliveries?status=failure')}>Failed deliveries</a>}
    >
      <Loaded resource={failing} lines={3}>
        {(rows) =>
          rows.length === 0 ? (
            <p class="muted">No delivery of the last 15 minutes failed or is retried.</p>
          ) : (
            <Table<Failing> label="Endpoints that fail" rows={rows} columns={columns} />
          )
        }
      </Loaded>
    </Panel>
  );
}

const columns = [
  {
    name: 'Endpoint',
    cell: ({ uid, name }: Failing) => <a href={projectHref(`/endpoints/${uid}`)}>{name}</a>,
  },
  {
    name: 'Status',
    cell: ({ newest }: Failing) => <Badge status={newest.endpoint_metadata.status ?? 'unknown'} />,
  },
  {
    name: 'Failed or retried',
    isNumber: true,
    cell: ({ uid, name, count }: Failing) => (
      <a
        href={projectHref(`/deliveries?endpoint=${uid}&range=1h`)}
        aria-label={`Deliveries to ${name}: ${count} failed or retried`}
      >
        {count}
      </a>
    ),
  },
  { name: 'Newest reason', cell: ({ newest }: Failing) => newest.reason },
  {
    name: 'Newest',
    cell: ({ newest }: Failing) => <Time at={newest.updated_at} look="relative" />,
  },
];

/** Groups deliveries, newest first, by endpoint. */
export function byEndpoint(deliveries: readonly EventDelivery[]): Failing[] {
  const groups = new Map<string, Failing>();
  for (const newest of deliveries) {
    const { uid, name } = newest.endpoint_metadata;
    const known = groups.get(uid) ?? { uid, name: name ?? uid, newest, count: 0 };
    groups.set(uid, { ...known, count: known.count + 1 });
  }
  return [...groups.values()].sort((one, other) => other.count - one.count);
}
