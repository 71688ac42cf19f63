import type { EventDelivery } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api, given, useAction } from '../../api/index.js';
import {
  BatchButton,
  Button,
  closedRange,
  FormDialog,
  Problem,
  rangeWords,
  toast,
  toastError,
} from '../../components/index.js';
import { isPortal, param } from '../../router/location.js';
import { maySend } from '../../session/session.js';
import { behindBreaker, BreakerNote, type HeldBack } from './breaker-note.js';
import { deliveryFilter } from './delivery-filter.js';

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

const SENDABLE = {
  failure: 'failed deliveries',
  discarded: 'discarded deliveries',
  success: 'successful deliveries',
  retry: 'deliveries waiting for a retry',
  waiting: 'deliveries waiting for their first attempt',
};

export function ResendAll() {
  const chosen = param('status');
  const status = (chosen || 'failure') as keyof typeof SENDABLE;
  const isWaiting = status === 'retry' || status === 'waiting';
  const { endpointId, event_type: eventType, query: idStart } = deliveryFilter();
  const [behind, setBehind] = useState<readonly HeldBack[]>([]);
  // A bulk resend cannot select by id prefix.
  if (!(status in SENDABLE) || idStart !== undefined || !maySend()) return null;
  return (
    <BatchButton
      label={isWaiting ? 'Retry now…' : 'Resend…'}
      title={isWaiting ? 'Retry deliveries now' : 'Resend deliveries'}
      words={{
        what: `${SENDABLE[status]}${eventType ? ` of ${eventType}` : ''}${endpointId ? ' to this endpoint' : ''}, ${rangeWords()}`,
        action: (count) => (isWaiting ? `Retry ${count} now` : `Resend ${count}`),
        done: (count) => `${count} queued`,
        held: 'of them wait until their paused endpoint is activated.',
        left: isWaiting
          ? 'more are skipped: they are already due, or their endpoint is not active.'
          : 'more are skipped: their endpoint is inactive or deleted.',
      }}
      begin={() => {
        const selection = {
          status: status === 'waiting' ? ('scheduled' as const) : status,
          ...closedRange(),
          ...given({ endpointId, event_type: eventType }),
        };
        const found = new Map<string, HeldBack>();
        return async (step, options) => {
          const {
            behind_breakers: breakers,
            due,
            held,
            left,
            next,
          } = await api().eventDeliveries.batchRetry({ ...selection, ...step }, options);
          for (const it of breakers) found.set(it.endpoint_id, it);
          setBehind([...found.values()]);
          return { count: due + held, held, left, next };
        };
      }}
      note={<BreakerNote behind={behind} />}
    />
  );
}
