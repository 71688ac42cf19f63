import { given, type ListQuery } from '../../api/index.js';
import { shownRange } from '../../components/index.js';
import { param } from '../../router/location.js';
import { REASONS } from './reasons.js';

type QuarantineQuery = ListQuery<'quarantine'>;

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

export function quarantineFilter(): QuarantineQuery {
  const status = param('status') || 'quarantined';
  return {
    ...shownRange(),
    ...(status === 'any' ? {} : { status: status as NonNullable<QuarantineQuery['status']> }),
    ...given({ code: param('code'), sourceId: param('source') }),
  };
}
