import type { GatewayClient } from '@gateway/client';
import { given } from '../../api/given.js';
import { param } from '../../router/location.js';
import { shownRange } from '../log/time-range.js';
import { REASONS } from './reasons.js';

type ListQuery = NonNullable<Parameters<GatewayClient['quarantine']['list']>[0]>;

/** Without a query those are shown that wait for someone. */
export const STATUSES = [
  ['', 'In quarantine'],
  ['replayed', 'Replayed'],
  ['discarded', 'Discarded'],
  ['any', 'Any status'],
] as const;

export const CODES = [['', 'Any reason'] as const, ...Object.entries(REASONS).map(([code, { label }]) => [code, label] as const)];

/** The list that the query of the page asks for. */
export function quarantineFilter(): ListQuery {
  const status = param('status') || 'quarantined';
  return {
    ...shownRange(),
    ...(status === 'any' ? {} : { status: status as NonNullable<ListQuery['status']> }),
    ...given({ code: param('code'), sourceId: param('source') }),
  };
}
