import type { InvalidField } from '@gateway/core/errors';
import { isTemplate } from '@gateway/core/events';
import { integer, object, type Static } from '../../api/vocabulary.js';

/** As many deliveries of a slow endpoint wait in the memory of an agent. */
const EVENTS_MAX = 100;
const BYTES_MAX = 5 * 1024 * 1024;
/** Deliveries that are collected take room in the memory of an agent. */
const WAIT_MAX_MS = 60_000;

export const Batch = object({
  max_events: integer(1, EVENTS_MAX, 'Maximum number of events in a request.'),
  max_bytes: integer(
    1_024,
    BYTES_MAX,
    'Maximum size of a request, approximately. A larger event has a request of its own.',
  ),
  max_wait_ms: integer(
    0,
    WAIT_MAX_MS,
    'Maximum time in milliseconds that an event waits for others.',
  ),
});

interface Batched {
  readonly batch?: Static<typeof Batch> | null | undefined;
  readonly format?: string | null | undefined;
  readonly ordering?: string | null | undefined;
  readonly headers?:
    | readonly { readonly value?: string | undefined; readonly is_template?: boolean }[]
    | null
    | undefined;
}

/** Takes the endpoint as it will be. */
export function batchProblems({ batch, format, ordering, headers }: Batched): InvalidField[] {
  const problem = (sentence: string) => [{ field: 'batch', sentence }];
  if (!batch) return [];
  if (format)
    return problem(`cannot be combined with the format ${format}: set format or batch to null`);
  if (headers?.some(({ value, is_template: is }) => is ?? isTemplate(value ?? '')))
    return problem(
      'cannot be combined with headers that hold {{ }}: a batch is made of several messages',
    );
  return ordering
    ? problem(
        'cannot be combined with ordering, which sends one delivery of a key at a time: set ordering or batch to null',
      )
    : [];
}
