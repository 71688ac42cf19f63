import type { Config } from '@gateway/core/config';
import type { QuarantineRef } from '@gateway/store/quarantine';
import { retryUntil } from '../app/kv.js';

/** How long KV is waited for; the reconciler of the agents finds in seconds what was not signalled. */
const PATIENCE_MS = 1_000;

/** Tells the agents of events that are pending. */
export interface Signals {
  push(events: readonly QuarantineRef[]): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens KV for signals. It may be away: the agents find the events a few seconds later then.
 *
 * @param away is told once when KV is not to be had
 * @throws GatewayError `tls_file` when a file of `kv.tls` cannot be used
 */
export async function openSignals(config: Config, away: () => void): Promise<Signals> {
  const [{ openKv }, { encodeSignal }] = await Promise.all([import('@gateway/store/kv'), import('@gateway/store/events')]);
  // One of this process alone is no way to an agent.
  if (config.kv.type === 'in-memory') return { push: () => Promise.resolve(), close: () => Promise.resolve() };
  const kv = openKv(config.kv, () => undefined);
  let lost = await retryUntil(
    () => kv.ping(),
    (waitedMs) => waitedMs < PATIENCE_MS,
  ).then(
    () => false,
    () => true,
  );
  if (lost) away();
  return {
    async push(events) {
      if (lost || events.length === 0) return;
      await kv
        .queue('create-event')
        .push(events.map(encodeSignal))
        .catch(() => {
          lost = true;
          away();
        });
    },
    close: () => kv.close(),
  };
}
