import { silentLog, type Log } from '#core/logging/log';
import type { Kv } from '#store/kv/kv';
import { kvFallback } from '#store/kv/kv-fallback';
import { SharedBuckets } from '#store/kv/shared-buckets';

/** Buckets as an agent has them, one of `agents`. */
export function bucketsOn(kv: Kv, agents = 1, log: Pick<Log, 'info' | 'warn'> = silentLog) {
  const place = { host: 'kv', port: 1 };
  const meanwhile = 'this agent keeps to its share';
  return new SharedBuckets({
    kv: kvFallback(kv, { place, log: log as Log, meanwhile, timeoutMs: 5_000 }),
    sharers: () => agents,
  });
}
