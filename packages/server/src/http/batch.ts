import { Type } from '@sinclair/typebox';
import { Time } from './list-query.js';
import { described, Id, nullable, optional } from './schema.js';

/**
 * A request then returns the position where the next one continues. Shorter than proxy timeouts.
 */
export const WORK_MS = 10_000;

/** For requests that work in steps. Routes add filters. */
export const stepQuery = optional({
  dry_run: Type.Boolean({ description: 'Counts what would be affected, without changing it.' }),
  after: described(Id, 'The `next` of the previous response, to continue from there.'),
});

export const batchQuery = { startDate: Time, ...optional({ endDate: Time }), ...stepQuery };

export const Next = nullable(
  Type.String({ description: 'Pass it as `after` to continue; null when everything is done.' }),
);
