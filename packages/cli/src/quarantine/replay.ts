import { signalPending } from '@gateway/ingest/commit/signal-pending';
import { dryRun, type DryRun, replay, type Replayed } from '@gateway/ingest/once/replay';
import { idleSandbox, sandboxLimits } from '@gateway/ingest/transform/sandboxes';
import type { Config } from '@gateway/core/config';
import { eventTypeCatalogue } from '@gateway/store/config';
import { openKv, retryKv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import {
  readReplayable,
  type QuarantineEntry,
  type QuarantineRef,
} from '@gateway/store/quarantine';
import type { EntryPages } from './selection.js';

/**
 * The number of messages replayed concurrently, each on its own connection. Postgres flushes
 * concurrent commits together, and transforms run in batches.
 */
export const CONCURRENT_MESSAGES = 16;
/** The maximum wait for KV. Agents find events without a signal a few seconds later. */
const KV_PATIENCE_MS = 1_000;

export type ReplayResult = Replayed | DryRun;

interface ReplayAllOptions {
  readonly config: Config;
  readonly database: Database;
  readonly dryRun: boolean;
  readonly onKvAway: () => void;
  readonly onSkipped: (entry: QuarantineEntry) => void;
  /** Called, in order, for each message that was not skipped. */
  readonly onResult: (id: string, result: ReplayResult) => void;
}

/**
 * Replays the messages in bounded memory, and signals their events to the agents. If it throws,
 * completed replays are kept and have been reported.
 */
export async function replayAll(pages: EntryPages, options: ReplayAllOptions): Promise<void> {
  const { config, database, onKvAway, onSkipped, onResult } = options;
  const {
    max_message_bytes: maxMessageBytes,
    idempotency_window_seconds: idempotencyWindowSeconds,
  } = config.ingest;
  const sandbox = idleSandbox(sandboxLimits(config));
  const checked = {
    sandbox,
    maxMessageBytes,
    catalogue: eventTypeCatalogue(database.pool),
    idempotencyWindowSeconds,
  };
  const signals = options.dryRun ? undefined : await openSignals(config, onKvAway);
  try {
    for await (const { planes, entries } of pages) {
      entries.filter(({ status }) => status !== 'quarantined').forEach(onSkipped);
      const refs = entries.flatMap(({ status, project_id: projectId, id }) =>
        status === 'quarantined' ? [{ projectId, id }] : [],
      );
      for (let at = 0; at < refs.length; at += CONCURRENT_MESSAGES) {
        const messages = await readReplayable(planes, refs.slice(at, at + CONCURRENT_MESSAGES));
        const settled = await Promise.allSettled(
          messages.map((it) =>
            options.dryRun ? dryRun(it, checked) : replay(it, { ...checked, planes }),
          ),
        );
        const replayed: QuarantineRef[] = [];
        for (const [i, { projectId, id }] of messages.entries()) {
          const result = settled[i]!;
          if (result.status === 'rejected') continue;
          onResult(id, result.value);
          if (result.value.kind === 'replayed')
            replayed.push(...result.value.ids.map((eventId) => ({ projectId, id: eventId })));
        }
        await signals?.push(replayed, planes.shard);
        for (const it of settled) if (it.status === 'rejected') throw it.reason;
      }
    }
  } finally {
    await Promise.all([sandbox.close(), signals?.close()]);
  }
}

/**
 * Opens KV to signal pending events. Returns undefined if KV is in memory. Throws `tls_file` if a
 * TLS file cannot be read.
 */
export async function openSignals(config: Config, onKvAway: () => void) {
  // Agents do not share this process's memory, so none would receive the signals.
  if (config.kv.type === 'in-memory') return undefined;
  const kv = openKv(config.kv, () => undefined);
  let isAway = false;
  const warn = () => {
    if (!isAway) onKvAway();
    isAway = true;
  };
  await retryKv(() => kv.ping(), KV_PATIENCE_MS).catch(warn);
  return {
    push: (events: readonly QuarantineRef[], shard: string) =>
      isAway ? undefined : signalPending({ kv, log: { warn }, shard }, events),
    close: () => kv.close(),
  };
}
