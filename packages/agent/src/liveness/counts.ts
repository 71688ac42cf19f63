import type { Log } from '@gateway/core/logging';
import { repeat } from '@gateway/core/process';
import { applyPendingDeltas, sampleBacklog } from '@gateway/store/counts';
import type { Database } from '@gateway/store/postgres';

interface CountsOptions {
  readonly pool: Database['sessions'];
  readonly log: Log;
}

const EVERY_MS = 10_000;
const IDLE_FACTOR = 6;
/**
 * The share of time that all agents spend applying deltas, unless the interval would become longer
 * than that of an idle agent. The longer it is, the fewer counts are updated.
 */
const SHARE_MAX = 0.05;

/**
 * Applies deltas in one agent at a time, which bounds their number even if metrics are off. The
 * returned function stops the updates and rolls back a running one.
 *
 * @param options.agents the number of agents that share the updates
 */
export function startCountUpdates({
  pool,
  log,
  everyMs = EVERY_MS,
  agents = () => 1,
}: CountsOptions & { readonly everyMs?: number; readonly agents?: () => number }) {
  const idleMs = everyMs * IDLE_FACTOR;
  const update = async (signal: AbortSignal) => {
    const startedAtMs = performance.now();
    const applied = await applyPendingDeltas(pool, signal);
    // Agents that start together spread out.
    if (applied === 0) return idleMs * (1 - Math.random() / 2);
    const tookMs = performance.now() - startedAtMs;
    return Math.min(Math.max(everyMs, tookMs / SHARE_MAX), idleMs) * agents();
  };
  return repeat(update, {
    afterMs: everyMs,
    retryMs: idleMs,
    failed(error, isFirst) {
      if (isFirst) log.warn({ error }, 'Could not apply count deltas; they stay in count_changes.');
    },
  });
}

/** Shorter than the minute that is sampled once, so that none is left out. */
const BACKLOG_MS = 20_000;

export function startBacklogSamples({ pool, log }: CountsOptions) {
  return repeat((signal) => sampleBacklog(pool, signal).then(() => BACKLOG_MS), {
    retryMs: BACKLOG_MS,
    failed(error, isFirst) {
      if (isFirst) log.warn({ error }, 'Could not sample the backlog; its chart will have a gap.');
    },
  });
}
