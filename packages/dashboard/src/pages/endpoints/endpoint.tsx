import type { Endpoint, Subscription } from '@gateway/client';
import { api, useResource } from '../../api/index.js';
import {
  ActionButton,
  Badge,
  ButtonLink,
  Link,
  Loaded,
  Panel,
  ResourcePage,
  Table,
  type TableColumns,
  Time,
} from '../../components/index.js';
import { isPortal } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { mayManage } from '../../session/session.js';
import { CLOSED } from '../deliveries/resend.js';
import { filterWords } from '../subscriptions/subscription-draft.js';
import { EndpointActions } from './actions.js';
import { Health } from './health.js';
import { ParkedKeys } from './parked-keys.js';
import { Secrets } from './secrets.js';
import { Settings } from './settings.js';
import { type Attempts, attemptsOf, stateOf } from './state.js';

const LIVE_MS = 3_000;

export default function EndpointPage({ id }: PageProps) {
  const resource = useResource(
    `endpoint ${id} with attempts`,
    async (options) => {
      const [endpoint, attempts] = await Promise.all([
        api().endpoints.get(id, options),
        attemptsOf([id], options),
      ]);
      return { endpoint, attempts: attempts.get(id) };
    },
    LIVE_MS,
  );
  return (
    <ResourcePage
      resource={resource}
      title={({ endpoint }) => endpoint.name}
      name="Endpoint"
      list="Endpoints"
      actions={({ endpoint }) => <EndpointActions endpoint={endpoint} />}
    >
      {({ endpoint, attempts }) => (
        <>
          <StateLine endpoint={endpoint} attempts={attempts} />
          <Health id={id} />
          {!isPortal.value && <ParkedKeys endpointId={id} />}
          <Subscriptions endpointId={id} />
          <div class="split">
            <div>
              <Settings endpoint={endpoint} />
            </div>
            <aside>
              <Secrets endpoint={endpoint} />
            </aside>
          </div>
        </>
      )}
    </ResourcePage>
  );
}

function StateLine({ endpoint, attempts }: { endpoint: Endpoint; attempts: Attempts | undefined }) {
  const { status, circuit_breaker: breaker } = endpoint;
  const { label, tone, sentence, until } = stateOf(endpoint, attempts);
  const isTripped =
    breaker !== null && (breaker.state !== 'closed' || breaker.back_off_until !== null);
  return (
    <section class={`notice endpoint-state ${tone}`} aria-label="State">
      <p role="status">
        <Badge status={label} tone={tone} /> <span class="mono">{endpoint.url}</span>
      </p>
      <p>
        {sentence}
        {until && (
          <>
            {' '}
            <Time at={until} look="relative" />.
          </>
        )}
      </p>
      {isTripped && status === 'active' && mayManage() && (
        <div>
          <ActionButton
            work={() => api().endpoints.resetCircuitBreaker(endpoint.uid)}
            told={CLOSED[isPortal.value ? 'owner' : 'project']}
          >
            {isPortal.value ? 'Send now' : 'Close breaker and send now'}
          </ActionButton>
        </div>
      )}
    </section>
  );
}

const MOST = 100;

function Subscriptions({ endpointId }: { endpointId: string }) {
  const resource = useResource(`subscriptions of ${endpointId}`, (options) =>
    api().subscriptions.list({ endpointId, perPage: MOST }, options).page(),
  );
  return (
    <Panel
      title="Subscriptions"
      actions={
        mayManage() && (
          <ButtonLink to={`/subscriptions/new?endpoint=${endpointId}`}>Add subscription</ButtonLink>
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
              <Table label="Subscriptions" rows={content} columns={columns} />
              {pagination.has_next_page && <p class="muted">Showing the newest {MOST}.</p>}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

const columns: TableColumns<Subscription> = {
  Name: ({ uid, name }) => <Link to={`/subscriptions/${uid}`}>{name}</Link>,
  State: ({ is_disabled: isOff }) => (
    <Badge status={isOff ? 'disabled' : 'enabled'} tone={isOff ? 'warn' : 'ok'} />
  ),
  'Event types': ({ filter_config: it }) => <span class="mono">{it.event_types.join(', ')}</span>,
  Filter: ({ filter_config: { filter } }) => <span class="muted">{filterWords(filter)}</span>,
};
