import type { Config } from '@gateway/core/config';
import type { BehindBreaker } from '@gateway/store/kv';
import { escapeLine } from '../output/escape-terminal.js';
import { counted } from '../output/table.js';
import { withKv } from './stores.js';

const LISTED = 20;

/**
 * Lets the next due delivery of an endpoint probe its open circuit breaker. Returns after how many
 * milliseconds a delivery may be due for that. Without KV, the breaker stays as it is.
 */
export async function probeBreaker(config: Config, endpointId: string): Promise<number> {
  if (config.kv.type === 'in-memory') return 0;
  const { hastenProbe } = await import('@gateway/store/kv');
  return withKv(config, (kv) => hastenProbe(kv, { endpointId })).catch(() => 0);
}

/**
 * Returns the open circuit breakers that due deliveries wait for. Null if they are unknown, because
 * KV is away or in the memory of another process.
 */
export async function findBehindBreakers(
  config: Config,
  due: readonly {
    readonly endpoint_id: string;
    readonly endpoint_name: string | null;
    readonly deliveries: number;
  }[],
): Promise<BehindBreaker[] | null> {
  if (due.every(({ deliveries }) => deliveries === 0)) return [];
  if (config.kv.type === 'in-memory') return null;
  const { behindBreakers, breakerView, readBreakers } = await import('@gateway/store/kv');
  const endpointIds = due.map(({ endpoint_id: id }) => id);
  const queued = due.map(
    ({ endpoint_id: endpointId, endpoint_name: endpointName, deliveries: count }) => ({
      endpointId,
      endpointName,
      count,
    }),
  );
  const records = await withKv(config, (kv) => readBreakers(kv, { endpointIds })).catch(
    () => undefined,
  );
  return records ? behindBreakers(queued, (id) => breakerView(records.get(id))) : null;
}

/** Returns a line for each circuit breaker that deliveries wait for, and how to close it. */
export function breakerLines(behind: readonly BehindBreaker[] | null, now = new Date()): string[] {
  if (!behind) return ['whether circuit breakers hold them back is unknown: KV cannot be read'];
  const lines = behind
    .slice(0, LISTED)
    .flatMap(({ endpoint_id: id, endpoint_name: name, ...it }) => {
      const state =
        it.until && it.until > now
          ? `is open until ${it.until.toISOString()}`
          : 'is open; the next delivery tries the endpoint, and closes it on success';
      return [
        `${counted(it.count, 'event delivery waits', 'event deliveries wait')}: the circuit breaker of ${escapeLine(name ?? id, 40)} ${state}`,
        `  close it: gateway utils circuit-breakers --endpoint-id ${id} --reset`,
      ];
    });
  const more = behind.length - LISTED;
  return more > 0 ? [...lines, `… and ${more} more; --json shows all`] : lines;
}
