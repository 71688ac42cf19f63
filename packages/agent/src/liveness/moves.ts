import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '@gateway/core/logging';
import { repeat } from '@gateway/core/process';
import { continueMove, listMoves, noteMoveError, takeMoves, type Move } from '@gateway/store/moves';
import type { Shards } from '@gateway/store/shards';

const EVERY_MS = 2_000;
/** The interval while a move waits for deliveries that agents have claimed. */
const SOON_MS = 250;
/** How long an agent goes on with moves before another one may. */
const TURN_MS = 10_000;
const AT_ONCE = 4;

/**
 * Goes on with moves of projects, in one agent at a time, each on its own: a shard that does not
 * answer holds up the moves from and to it alone. Returns a function that stops this.
 */
export function startMoves(shards: Shards, log: Log): () => Promise<void> {
  const { control } = shards;
  const running = new Map<string, Promise<void>>();
  const stop = repeat(
    async (signal) => {
      if (shards.all.length === 1) return EVERY_MS;
      const work = async () => {
        for (const move of await listMoves(control.pool)) {
          if (running.size >= AT_ONCE) break;
          if (running.has(move.projectId)) continue;
          const run = runMove(shards, move, { log, signal });
          running.set(
            move.projectId,
            run.finally(() => running.delete(move.projectId)),
          );
        }
        if (running.size === 0) return false;
        const ended = new AbortController();
        await Promise.race([
          Promise.all(running.values()),
          sleep(2 * TURN_MS, null, {
            signal: AbortSignal.any([signal, ended.signal]),
            ref: false,
          }).catch(() => undefined),
        ]);
        ended.abort();
        return true;
      };
      return (await takeMoves(control, work, signal)) ? SOON_MS : EVERY_MS;
    },
    {
      retryMs: EVERY_MS,
      failed: (error, isFirst) =>
        log[isFirst ? 'warn' : 'debug'](
          { error },
          'Could not read the moves of projects; retrying.',
        ),
    },
  );
  return async () => {
    await stop();
    await Promise.all(running.values());
  };
}

/** Does steps of a move until it must wait, or for `TURN_MS`. */
async function runMove(
  shards: Shards,
  move: Move,
  { log, signal }: { readonly log: Log; readonly signal: AbortSignal },
): Promise<void> {
  const untilMs = performance.now() + TURN_MS;
  try {
    let is: Awaited<ReturnType<typeof continueMove>> = 'more';
    while (is === 'more' && performance.now() < untilMs && !signal.aborted)
      is = await continueMove(shards, move);
    if (is === 'done' && move.phase === 'history')
      log.info(
        { project_id: move.projectId, from: move.from, to: move.to },
        'A project was moved to another shard with all of its events.',
      );
  } catch (error) {
    if (signal.aborted) return;
    log.warn(
      { error, project_id: move.projectId, from: move.from, to: move.to },
      'A step of moving a project to another shard failed; retrying.',
    );
    const reason = error instanceof Error ? error.message : String(error);
    await noteMoveError(shards.control.pool, move, reason).catch(() => undefined);
  }
}
