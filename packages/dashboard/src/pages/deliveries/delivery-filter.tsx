import type { GatewayClient } from '@gateway/client';
import { api, given } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { byName } from '../../components/field.js';
import { FilterSelect, searchOf, type Search } from '../../components/log/filter-bar.js';
import { shownRange } from '../../components/log/time-range.js';
import { isPortal, param } from '../../router/location.js';

type DeliveryQuery = NonNullable<Parameters<GatewayClient['eventDeliveries']['list']>[0]>;
type Status = NonNullable<DeliveryQuery['status']>[number];

/** In the words of the badges. */
export const STATUSES = [
  ['', 'Any status'],
  ['failure', 'failure'],
  ['retry', 'retry'],
  // Deliveries that agents hold are scheduled again when these end.
  ['waiting', 'scheduled, processing'],
  ['success', 'success'],
  ['discarded', 'discarded'],
] as const;

/** From the page's query. */
export function deliveryFilter(): DeliveryQuery & Search {
  const status = param('status');
  const statuses: readonly Status[] | undefined =
    status === 'waiting' ? ['scheduled', 'processing'] : status ? [status as Status] : undefined;
  return {
    ...shownRange(),
    ...searched(param('search')),
    ...given({ status: statuses, endpointId: param('endpoint') }),
  };
}

/**
 * The portal cannot list by event type, so it sends any text as an id, and the API reports the
 * error.
 */
function searched(text: string): Search {
  return isPortal.value && text !== '' ? { query: text.trim() } : searchOf(text);
}

const MOST = 100;

/** The list is limited, so an endpoint set by a URL parameter is read separately. */
export function EndpointFilter() {
  const chosen = param('endpoint');
  const { data: known } = useResource('endpoints to filter by', async (signal) =>
    byName((await api().endpoints.list({ perPage: MOST }, { signal }).page()).content),
  );
  const isOther = chosen !== '' && known && !known.some(([uid]) => uid === chosen);
  const named = useResource(isOther ? `endpoint ${chosen}` : undefined, (signal) =>
    api().endpoints.get(chosen, { signal }),
  );
  const options = [['', 'Any endpoint'] as const, ...(known ?? [])];
  return (
    <FilterSelect
      name="endpoint"
      label="Endpoint"
      options={options}
      other={named.data?.name ?? 'One endpoint'}
    />
  );
}
