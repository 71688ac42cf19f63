import type { GatewayClient } from '@gateway/client';
import { given } from '../../api/client.js';
import { shownRange } from '../../components/log/time-range.js';
import { param } from '../../router/location.js';
import { REASONS } from './reasons.js';

type QuarantineQuery = NonNullable<Parameters<GatewayClient['quarantine']['list']>[0]>;

/** The values of the `status` filter. By default, only messages that need a decision are listed. */
export const STATUSES = [
  ['', 'quarantined'],
  ['replayed', 'replayed'],
  ['discarded', 'discarded'],
  ['any', 'Any status'],
] as const;

export const CODES = [
  ['', 'Any reason'] as const,
  ...Object.entries(REASONS).map(([code, { label }]) => [code, label] as const),
];

/** Converts the page's query to API filters. */
export function quarantineFilter(): QuarantineQuery {
  const status = param('status') || 'quarantined';
  return {
    ...shownRange(),
    ...(status === 'any' ? {} : { status: status as NonNullable<QuarantineQuery['status']> }),
    ...given({ code: param('code'), sourceId: param('source') }),
  };
}
