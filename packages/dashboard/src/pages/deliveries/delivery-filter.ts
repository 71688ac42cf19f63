import type { GatewayClient } from '@gateway/client';
import { given } from '../../api/given.js';
import { param } from '../../router/location.js';
import { isPortal } from '../../router/project-path.js';
import { searchOf, type Search } from '../log/search.js';
import { shownRange } from '../log/time-range.js';

type ListQuery = NonNullable<Parameters<GatewayClient['eventDeliveries']['list']>[0]>;
type Status = NonNullable<ListQuery['status']>[number];

/** Values and labels of the `status` filter. `waiting` is two statuses of the API. */
export const STATUSES = [
  ['', 'Any status'],
  ['failure', 'Failed'],
  ['retry', 'Retrying'],
  ['waiting', 'Waiting'],
  ['success', 'Delivered'],
  ['discarded', 'Discarded'],
] as const;

/** The API filters of the page's query. */
export function deliveryFilter(): ListQuery & Search {
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
 * The portal cannot list by event type: any text is sent as an id, and the API reports the error.
 */
function searched(text: string): Search {
  return isPortal.value && text !== '' ? { query: text.trim() } : searchOf(text);
}
