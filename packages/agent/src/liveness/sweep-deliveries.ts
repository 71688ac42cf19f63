import { sweepDeliveries } from '@gateway/store/deliveries';
import { parkOverdue, sweepKeys, type SweepPosition } from '@gateway/store/ordering';
import type { DueTimes } from '../delivery/due-times.js';
import type { AgentContext } from '../config/agent-context.js';

const SWEEP_MS = 30_000;
/**
 * The delay of the sweep after a pause has ended. By then, writes of this agent that saw the
 * endpoint as paused have ended.
 */
const SETTLED_MS = 3_000;
const MINUTE_SECONDS = 60;
/** The first sweep covers endpoints deleted this recently, in case no agent was running. */
const DELETED_FIRST_SECONDS = 24 * 60 * MINUTE_SECONDS;
/**
 * Later sweeps cover endpoints deleted this recently. The time spans many sweeps, in case some
 * fail.
 */
const DELETED_SECONDS = 15 * MINUTE_SECONDS;

/**
 * Releases or discards deliveries left behind when their endpoint or project changed, every 30
 * seconds and soon after a pause ends, because this agent may still have postponed some during it.
 * Returns a function that stops the sweeps.
 */
export function startSweeps({
  shard: { name, planes },
  configCache,
  log,
  dueTimes,
}: Pick<AgentContext, 'shard' | 'configCache' | 'log'> & {
  readonly dueTimes: Pick<DueTimes, 'add'>;
}): () => Promise<void> {
  const stop = new AbortController();
  let timer: NodeJS.Timeout;
  let running: Promise<void> | undefined;
  let isHurried = true;
  let deletedSeconds = DELETED_FIRST_SECONDS;
  const position: SweepPosition = new Map();

  const sweep = async () => {
    isHurried = false;
    try {
      const deliveries = await sweepDeliveries(planes, deletedSeconds, stop.signal);
      deletedSeconds = DELETED_SECONDS;
      for (const { projectId } of await sweepKeys(planes.data, position))
        dueTimes.add(projectId, 0);
      for (const { endpoints } of configCache.inShard(name))
        for (const {
          projectId,
          id: endpointId,
          orderingParkAfterSeconds: seconds,
        } of endpoints.values())
          if (seconds !== null) await parkOverdue(planes.data, { projectId, endpointId }, seconds);
      if (deliveries > 0)
        log.info(
          { deliveries },
          'Released or discarded deliveries of inactive or deleted endpoints and projects.',
        );
    } catch (error) {
      log.warn(
        { error },
        'Could not look for deliveries of inactive or deleted endpoints and projects; retrying.',
      );
    }
    running = undefined;
    schedule(isHurried ? SETTLED_MS : SWEEP_MS);
  };
  const schedule = (inMs: number) => {
    clearTimeout(timer);
    if (!stop.signal.aborted) timer = setTimeout(() => void (running = sweep()), inMs);
  };
  const pausedNow = () => {
    const ids = new Set<string>();
    for (const { endpoints } of configCache.inShard(name))
      for (const { id, status } of endpoints.values()) if (status === 'paused') ids.add(id);
    return ids;
  };
  let paused = pausedNow();
  const unfollow = configCache.onChange(() => {
    const before = paused;
    paused = pausedNow();
    if (isHurried || [...before].every((id) => paused.has(id))) return;
    isHurried = true;
    if (!running) schedule(SETTLED_MS);
  });
  schedule(SETTLED_MS);
  return async () => {
    stop.abort();
    unfollow();
    clearTimeout(timer);
    await running;
  };
}
