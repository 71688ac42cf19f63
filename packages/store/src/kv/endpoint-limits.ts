import type { Kv } from './kv.js';

const TTL_MS = 10_000;
/** Per agent and renewal of its lease, those with the lowest limits. */
const ENDPOINTS_MAX = 500;

export interface LoweredLimit {
  readonly endpointId: string;
  /** Requests at once that the endpoint gets from an agent, below its setting. */
  readonly limit: number;
}

const nameOf = (endpointId: string) => `endpoint-limit:${endpointId}`;

/** Each agent, whenever it renews its lease. Rejects if KV is down. */
export async function writeLoweredLimits(kv: Kv, lowered: readonly LoweredLimit[]): Promise<void> {
  const lowest = lowered.slice(0, ENDPOINTS_MAX);
  await Promise.all(
    lowest.map(({ endpointId, limit }) =>
      kv.set(nameOf(endpointId), String(limit), { ttlMs: TTL_MS }),
    ),
  );
}

/** As the agent said that wrote last; null if none has lowered it. Rejects if KV is down. */
export async function readLoweredLimit(kv: Kv, endpointId: string): Promise<number | null> {
  const text = await kv.get(nameOf(endpointId));
  return text === undefined ? null : Number(text);
}
