import type { Kv, KvSettings } from './kv.js';
import { MemoryKv } from './memory-kv.js';
import { RedisKv } from './redis-kv.js';

/**
 * Opens KV; connects in the background, so that a gateway starts and works (more slowly) while KV is away.
 *
 * @throws GatewayError `tls_file` when a file of `kv.tls` cannot be used
 */
export function openKv(settings: KvSettings, onError: (error: Error) => void): Kv {
  return settings.type === 'in-memory' ? new MemoryKv() : new RedisKv(settings, onError);
}
