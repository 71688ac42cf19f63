import type { GatewayClient } from '@gateway/client';
import { given } from '../../api/given.js';
import { param } from '../../router/location.js';
import { isPortal } from '../../router/project-path.js';
import { searchOf, type Search } from '../log/search.js';
import { shownRange } from '../log/time-range.js';

type ListQuery = NonNullable<Parameters<GatewayClient['eventDeliveries']['list']>[0]>;
type Status = NonNullable<ListQuery['status']>[number];

/** The filter `status` with its words. `waiting` is two statuses of the API. */
export const STATUSES = [
  ['', 'Any status'],
  ['failure', 'Failed'],
  ['retry', 'Retrying'],
  ['waiting', 'Waiting'],
  ['success', 'Delivered'],
  ['discarded', 'Discarded'],
] as const;

/** The list that the query of the page asks for. */
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

/** In the portal there is no list by event type: the API says what it takes instead. */
function searched(text: string): Search {
  return isPortal.value && text !== '' ? { query: text.trim() } : searchOf(text);
}
