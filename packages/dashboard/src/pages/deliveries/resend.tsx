import type { EventDelivery } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api, useAction } from '../../api/index.js';
import {
  ActionButton,
  Button,
  FormDialog,
  Problem,
  Time,
  toast,
  toastError,
} from '../../components/index.js';
import { isPortal } from '../../router/location.js';
import { mayManage, maySend } from '../../session/session.js';

const isWaiting = ({ status }: EventDelivery) => status === 'retry' || status === 'scheduled';

/** Without confirmation, for a failed, discarded or waiting delivery. */
export function resendNow(delivery: EventDelivery): void {
  const { uid, status, event_metadata: event, endpoint_id: endpointId } = delivery;
  if (status === 'success' || status === 'processing') {
    toast(
      status === 'success'
        ? 'Already delivered. Open the delivery to resend it.'
        : 'This delivery is already in progress.',
      'bad',
    );
    return;
  }
  const name = event.event_type ?? 'the event';
  api()
    .eventDeliveries.resend(uid)
    .then(() => behindBreaker(endpointId))
    .then((behind) => {
      if (!behind) return toast(`${isWaiting(delivery) ? 'Retrying' : 'Resending'} ${name}.`);
      toast(
        isPortal.value
          ? `Queued ${name} to try ${behind.endpoint_name} again.`
          : `Queued ${name} to probe the open circuit breaker of ${behind.endpoint_name}.`,
      );
    })
    .catch(toastError);
}

export function ResendButton({ delivery }: { delivery: EventDelivery }) {
  const [isAsked, setAsked] = useState(false);
  const [behind, setBehind] = useState<readonly HeldBack[]>([]);
  const isDelivered = delivery.status === 'success';
  const action = useAction(async () => {
    await api().eventDeliveries.resend(delivery.uid, isDelivered ? { force: true } : {});
    setAsked(false);
    const found = await behindBreaker(delivery.endpoint_id);
    setBehind(found ? [found] : []);
    toast(
      found
        ? 'Delivery queued.'
        : `${isWaiting(delivery) ? 'Retrying' : 'Resending'} the delivery.`,
    );
  });
  const isHeld = isWaiting(delivery) && delivery.endpoint_metadata.status === 'paused';
  const press = () => (isDelivered ? setAsked(true) : action.run());
  if (delivery.status === 'processing' || isHeld || !maySend())
    return <BreakerNote behind={behind} />;
  return (
    <>
      <Button
        kind={isDelivered ? 'plain' : 'main'}
        keys="r"
        isRunning={action.isRunning}
        onPress={press}
      >
        {isWaiting(delivery) ? 'Retry now' : 'Resend'}
      </Button>
      {action.error && !isAsked && <Problem error={action.error} />}
      {isAsked && (
        <FormDialog
          title="Resend this delivery?"
          verb="Resend"
          action={action}
          onClose={() => setAsked(false)}
        >
          <p>
            The endpoint has already accepted this delivery. It receives a duplicate with the same{' '}
            <code>webhook-id</code>, which lets it detect the duplicate.
          </p>
        </FormDialog>
      )}
    </>
  );
}

export interface HeldBack {
  readonly endpoint_id: string;
  readonly endpoint_name: string | null;
  readonly until: string | null;
}

/** Undefined if the circuit breaker is closed. */
async function behindBreaker(endpointId: string): Promise<HeldBack | undefined> {
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
