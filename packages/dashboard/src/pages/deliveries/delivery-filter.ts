import { given, type ListQuery } from '../../api/index.js';
import { type Search, searchOf, shownRange } from '../../components/index.js';
import { isPortal, param } from '../../router/location.js';

type DeliveryQuery = ListQuery<'eventDeliveries'>;
type Status = NonNullable<DeliveryQuery['status']>[number];

export const STATUSES = [
  ['', 'Any status'],
  ['failure', 'failure'],
  ['retry', 'retry'],
  // Deliveries that agents hold are scheduled again when these end.
  ['waiting', 'scheduled, processing'],
  ['success', 'success'],
  ['discarded', 'discarded'],
] as const;

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
