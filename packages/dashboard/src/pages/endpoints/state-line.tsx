import type { Endpoint } from '@gateway/client';
import { api } from '../../api/client.js';
import { Badge, Time } from '../../components/data.js';
import { toast } from '../../components/feedback.js';
import { ActionButton } from '../../components/form.js';
import { isPortal } from '../../router/location.js';
import { mayManage } from '../../session/session.js';
import { CLOSED } from '../deliveries/breaker-note.js';
import { stateOf, type Attempts } from './state.js';

/** Offers a remedy if the endpoint does not receive its deliveries. */
export function StateLine({
  endpoint,
  attempts,
  onChange,
}: {
  readonly endpoint: Endpoint;
  readonly attempts: Attempts | undefined;
  readonly onChange: () => void;
}) {
  const { label, tone, sentence, until } = stateOf(endpoint, attempts);
  const isTripped =
    endpoint.circuit_breaker !== null && endpoint.circuit_breaker.state !== 'closed';
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
      {isTripped && endpoint.status === 'active' && mayManage() && (
        <div>
          <ActionButton
            work={async () => {
              await api().endpoints.resetCircuitBreaker(endpoint.uid);
              toast(CLOSED[isPortal.value ? 'owner' : 'project']);
              onChange();
            }}
          >
            {isPortal.value ? 'Send now' : 'Close breaker and send now'}
          </ActionButton>
        </div>
      )}
    </section>
  );
}
