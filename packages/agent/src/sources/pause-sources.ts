import { pauseSource, resumeDueSources } from '@gateway/store/config';
import type { ProcessContext } from '../config/agent-context.js';

export interface PausingOptions extends Pick<
  ProcessContext,
  'config' | 'database' | 'configCache' | 'log'
> {
  readonly name: string;
  readonly notifier: { readonly isMailing: boolean; hurry(): void };
}

const JITTER_MS = 500;
const AGAIN_MS = 5_000;

/** Pauses sources for all agents, and resumes them once their pause is over. */
export function pausing(options: PausingOptions): {
  pause(projectId: string, sourceId: string, reason: string): Promise<void>;
  close(): void;
} {
  const { config, database, configCache, log, name: agent, notifier } = options;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  const resumeAfter = (ms: number): void => {
    clearTimeout(timer);
    if (!closed) timer = setTimeout(() => void resume(), Math.min(ms, 2 ** 31 - 1));
  };
  const resume = async (): Promise<void> => {
    try {
      for (const { id, project_id: projectId, name, pauses } of await resumeDueSources(
        database.pool,
      ))
        log.info(
          { source_id: id, project_id: projectId, source: name, pauses },
          'The pause of a source has ended; resuming.',
        );
    } catch (error) {
      log.warn({ error }, 'Could not check paused sources; retrying.');
    }
    resumeAfter(AGAIN_MS);
  };
  const follow = (): void => {
    const waits = configCache.sources.flatMap(({ resumes_in_ms: ms }) => ms ?? []);
    if (waits.length > 0) resumeAfter(Math.max(0, Math.min(...waits)) + Math.random() * JITTER_MS);
    else clearTimeout(timer);
  };
  const unfollow = configCache.onChange(follow);

  return {
    async pause(projectId, id, reason) {
      const seconds = config.transform.pause_seconds;
      const paused = await pauseSource(database.pool, projectId, id, {
        reason,
        by: agent,
        seconds,
        facts: { since: new Date().toISOString(), error: reason },
        isMailed: notifier.isMailing,
      });
      if (paused) {
        const { resumes_at: resumesAt, pauses } = paused;
        log.warn(
          {
            source_id: id,
            project_id: projectId,
            reason,
            resumes_at: resumesAt.toISOString(),
            pauses,
          },
          'Paused a source whose transform function overruns repeatedly. Correct the function to resume the source.',
        );
        notifier.hurry();
      }
      await configCache.refresh();
    },
    close() {
      closed = true;
      unfollow();
      clearTimeout(timer);
    },
  };
}
