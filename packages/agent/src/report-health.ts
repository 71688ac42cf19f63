import { kvReason, type Config, type Health } from '@gateway/core';
import type { Kv } from '@gateway/store';
import type { Way } from './way.js';
import type { MemoryStore } from './memory-store.js';

const INTERVAL_MS = 2_000;
/** KV is asked less often: its state matters little to the way of a message. */
const KV_EVERY = 5;

/** Tells health how Postgres and KV stand, from what the steps of the way met. Returns what stops it. */
export function reportHealth(
  health: Health,
  { config, way, store, kv }: { config: Config; way: Way; store: MemoryStore; kv: Kv },
): () => void {
  const postgres = `Postgres at ${config.database.host}:${config.database.port}`;
  let turn = 0;
  const look = () => {
    const since = [store, way.heart, way.acceptor, way.recorder].map((part) => part.failingSince).find((failing) => failing !== null);
    if (since)
      health.report(
        'postgres',
        'down',
        `${postgres} does not answer; messages stay with their brokers. Check database.host and database.port.`,
      );
    else health.report('postgres', 'ok');
    if (turn++ % KV_EVERY === 0) {
      kv.ping().then(
        () => health.report('kv', 'ok'),
        (error: unknown) =>
          health.report('kv', 'degraded', `${kvReason(error, config.kv)}. Events are routed without it. Check kv.host and kv.port.`),
      );
    }
  };
  look();
  const timer = setInterval(look, INTERVAL_MS);
  return () => clearInterval(timer);
}
