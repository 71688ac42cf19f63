import type { DeliveryAttempt, EventDelivery } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Time } from '../../components/data.js';
import { capital } from '../../format/text.js';
import { failureWords } from '../../portal/attempts.js';
import { deliveryWords } from '../../portal/states.js';
import { isPortal, projectHref, projectId } from '../../router/location.js';

const LIVE_MS = 5_000;

/** From the newest failed or retried delivery. */
export function LastError({ endpointId }: { readonly endpointId: string }) {
  const { data } = useResource(
    `${projectId.value} last error of ${endpointId}`,
    async (signal) => {
      const newest = api().eventDeliveries.list(
        { endpointId, status: ['retry', 'failure'], perPage: 1 },
        { signal },
      );
      const delivery = (await newest.page()).content[0];
      if (!delivery) return undefined;
      const { content } = await api().eventDeliveries.listDeliveryAttempts(delivery.uid, {
        signal,
      });
      return { delivery, attempt: content[0] };
    },
    { everyMs: LIVE_MS },
  );
  if (!data) return null;
  const { delivery, attempt } = data;
  const why = isPortal.value
    ? ownerReason(delivery, attempt)
    : (attempt?.error ??
      delivery.reason ??
      (attempt ? `The endpoint answered ${attempt.http_status}` : 'The request was not sent'));
  return (
    <p>
      <strong>Last error:</strong> {capital(why)}{' '}
      <span class="muted">
        <a href={projectHref(`/deliveries/${delivery.uid}`)}>
          {delivery.event_metadata.event_type ?? 'Delivery'}
        </a>
        , <Time at={attempt?.requested_at ?? delivery.updated_at} look="relative" />
      </span>
    </p>
  );
}

function ownerReason(delivery: EventDelivery, attempt: DeliveryAttempt | undefined): string {
  if (!attempt) return deliveryWords(delivery).sentence;
  const { sentence, remedy } = failureWords(attempt);
  return `${sentence} ${remedy}`;
}
