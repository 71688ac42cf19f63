import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Loaded } from '../../components/feedback.js';
import { Page } from '../../components/layout.js';
import { projectHref, projectId } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { EndpointActions } from './actions.js';
import { attemptsOf } from './attempts.js';
import { Health } from './health.js';
import { Secrets } from './secrets.js';
import { Settings } from './settings.js';
import { StateLine } from './state-line.js';
import { Subscriptions } from './subscriptions.js';

const LIVE_MS = 3_000;

export default function EndpointPage({ params: { id = '' } }: PageProps) {
  const resource = useResource(
    `${projectId.value} endpoint ${id} with attempts`,
    async (signal) => {
      const [endpoint, attempts] = await Promise.all([
        api().endpoints.get(id, { signal }),
        attemptsOf([id], signal),
      ]);
      return { endpoint, attempts: attempts.get(id) };
    },
    { everyMs: LIVE_MS },
  );
  const { refresh } = resource;
  const shown = resource.data?.endpoint;
  return (
    <Page
      title={shown?.name ?? 'Endpoint'}
      above={<a href={projectHref('/endpoints')}>Endpoints</a>}
      actions={shown && <EndpointActions endpoint={shown} onChange={refresh} />}
    >
      <Loaded resource={resource} lines={12}>
        {({ endpoint, attempts }) => (
          <>
            <StateLine endpoint={endpoint} attempts={attempts} onChange={refresh} />
            <Health id={id} />
            <Subscriptions endpointId={id} />
            <div class="split">
              <div>
                <Settings endpoint={endpoint} onChange={refresh} />
              </div>
              <aside>
                <Secrets endpoint={endpoint} onChange={refresh} />
              </aside>
            </div>
          </>
        )}
      </Loaded>
    </Page>
  );
}
