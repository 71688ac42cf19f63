import { useState } from 'preact/hooks';
import { api } from '../../api/index.js';
import { ActionButton, Time, toast } from '../../components/index.js';
import { isPortal } from '../../router/location.js';
import { mayManage } from '../../session/session.js';

export interface HeldBack {
  readonly endpoint_id: string;
  readonly endpoint_name: string | null;
  readonly until: string | null;
}

/** Undefined if the circuit breaker is closed. */
export async function behindBreaker(endpointId: string): Promise<HeldBack | undefined> {
  const { uid, name, circuit_breaker: breaker } = await api().endpoints.get(endpointId);
  return breaker && breaker.state !== 'closed'
    ? { endpoint_id: uid, endpoint_name: name, until: breaker.until }
    : undefined;
}

export const CLOSED = {
  project: 'Circuit breaker closed. Waiting deliveries are being sent.',
  owner: 'Waiting messages are being sent.',
};

function openSentence([name = '', ...others]: readonly string[]): string {
  const count = others.length + 1;
  if (isPortal.value) {
    const where = count === 1 ? name : `${count} endpoints`;
    return `We paused sending to ${where}, because your server did not accept our requests`;
  }
  return count === 1
    ? `The circuit breaker of ${name} is open`
    : `The circuit breakers of ${count} endpoints are open`;
}

export function BreakerNote({ behind }: { behind: readonly HeldBack[] }) {
  const [isClosed, setClosed] = useState(false);
  const [first] = behind;
  if (!first || isClosed) return null;
  return (
    <>
      <p>
        {openSentence(behind.map((it) => it.endpoint_name ?? 'the endpoint'))}
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
            toast(CLOSED[isPortal.value ? 'owner' : 'project']);
          }}
        >
          {isPortal.value ? 'Send now' : behind.length === 1 ? 'Close breaker' : 'Close breakers'}
        </ActionButton>
      )}
    </>
  );
}
