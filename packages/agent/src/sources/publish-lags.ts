import { writeSourceLag, writeSourceState } from '@gateway/store/kv';
import type { AgentContext } from '../config/agent-context.js';
import type { SourceLags } from './source-lags.js';

const EVERY_MS = 10_000;
/** Writes per `EVERY_MS`. All but one contain only changed states. */
const TURNS = 10;

/**
 * For the management API: changed states within a second, and all of them every ten seconds, until
 * the returned function is called.
 */
export function publishLags(
  {
    kv,
    lease,
    log,
    lags,
  }: Pick<AgentContext, 'kv' | 'lease' | 'log'> & { readonly lags: SourceLags },
  everyMs = EVERY_MS,
): () => void {
  let isWriting = false;
  let turn = 0;
  const write = async () => {
    if (isWriting) return;
    isWriting = true;
    try {
      const { agentId } = lease;
      const isWhole = ++turn % TURNS === 0;
      for (const { projectId, sourceId, state, partitions } of lags.states({
        isNewsOnly: !isWhole,
      })) {
        await writeSourceState(kv, { projectId, sourceId, agentId }, state);
        if (!isWhole && partitions.length > 0)
          await writeSourceLag(kv, { sourceId, agentId }, partitions);
      }
      if (!isWhole) return;
      for (const { sourceId, partitions } of lags.known())
        await writeSourceLag(kv, { sourceId, agentId }, partitions);
    } catch (error) {
      log.debug({ error }, 'KV is unavailable: the management API cannot show the lag of sources.');
    } finally {
      isWriting = false;
    }
  };
  const timer = setInterval(() => void write(), everyMs / TURNS).unref();
  return () => clearInterval(timer);
}
