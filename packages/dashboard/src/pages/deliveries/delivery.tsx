import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import type { PageProps } from '../../router/match.js';
import { Badge } from '../../components/data/badge.js';
import { Copyable } from '../../components/data/copy.js';
import { Facts } from '../../components/data/facts.js';
import { FullTime } from '../../components/data/time.js';
import { Loaded } from '../../components/feedback/loading.js';
import { Page } from '../../components/layout/page.js';
import { Panel } from '../../components/layout/panel.js';
import { projectHref, projectId } from '../../router/project-path.js';

export default function DeliveryPage({ params: { id = '' } }: PageProps) {
  const resource = useResource(`${projectId.value} delivery ${id}`, (signal) => api().eventDeliveries.get(id, { signal }), {
    everyMs: 2_000,
  });
  return (
    <Page title="Delivery" above={<a href={projectHref('/deliveries')}>Deliveries</a>}>
      <Loaded resource={resource}>
        {(delivery) => (
          <Panel title={delivery.event_metadata.event_type ?? 'Delivery'}>
            <Facts
              rows={[
                ['Status', <Badge status={delivery.status} />],
                ['Id', <Copyable text={delivery.uid} what="id" />],
                ['Endpoint', delivery.endpoint_metadata.name],
                ['Reason', delivery.reason],
                ['Time', <FullTime at={delivery.occurred_at} />],
              ]}
            />
          </Panel>
        )}
      </Loaded>
    </Page>
  );
}
