import { api } from '../../api/client.js';
import type { Attempts } from './state.js';

const DAY_MS = 24 * 3_600_000;

/** Covers the last day. Endpoints without any are omitted. */
export async function attemptsOf(
  endpointId: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Attempts & { readonly last_at: string }>> {
  if (endpointId.length === 0) return new Map();
  const startDate = new Date(Date.now() - DAY_MS).toISOString();
  const { content } = await api().activity.endpoints({ endpointId, startDate }, { signal });
  return new Map(
    content.map(({ endpoint_id: id, attempts, last_attempt_at: last_at }) => [
      id,
      { ...attempts, last_at },
    ]),
  );
}
