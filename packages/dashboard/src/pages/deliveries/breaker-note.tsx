import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { Time } from '../../components/data.js';
import { toast } from '../../components/feedback.js';
import { ActionButton } from '../../components/form.js';
import { mayManage } from '../../session/session.js';

/** An endpoint whose open circuit breaker holds deliveries back. */
export interface HeldBack {
  readonly endpoint_id: string;
  readonly endpoint_name: string | null;
  readonly until: string | null;
}

/** Returns the endpoint if its circuit breaker is not closed. */
export async function behindBreaker(endpointId: string): Promise<HeldBack | undefined> {
  const { uid, name, circuit_breaker: breaker } = await api().endpoints.get(endpointId);
  return breaker && breaker.state !== 'closed'
    ? { endpoint_id: uid, endpoint_name: name, until: breaker.until }
    : undefined;
}

/** Says which breakers queued deliveries wait for, with a button that closes them. */
export function BreakerNote({ behind }: { behind: readonly HeldBack[] }) {
  const [isClosed, setClosed] = useState(false);
  const [first] = behind;
  if (!first || isClosed) return null;
  return (
    <>
      <p>
        {behind.length === 1
          ? `The circuit breaker of ${first.endpoint_name ?? 'the endpoint'} is open`
          : `The circuit breakers of ${behind.length} endpoints are open`}
        {behind.length === 1 && first.until && (
          <>
            {' '}
            until <Time at={first.until} look="row" />
          </>
        )}
        .
      </p>
      {mayManage() && (
        <ActionButton
          work={async () => {
            for (const { endpoint_id: id } of behind) await api().endpoints.resetCircuitBreaker(id);
            setClosed(true);
            toast('Circuit breaker closed. Waiting deliveries are being sent.');
          }}
        >
          {behind.length === 1 ? 'Close breaker' : 'Close breakers'}
        </ActionButton>
      )}
    </>
  );
}
