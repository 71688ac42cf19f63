import { writeSourceLag } from '@gateway/store/kv';
import type { AgentContext } from '../config/agent-context.js';
import type { SourceLags } from './source-watch.js';

const EVERY_MS = 10_000;

/** Writes what this agent knows of the lag of its sources to KV, for the management API, every ten seconds. Returns what stops it. */
export function publishLags(
  { kv, lease, log, lags }: Pick<AgentContext, 'kv' | 'lease' | 'log'> & { readonly lags: SourceLags },
  everyMs = EVERY_MS,
): () => void {
  let isWriting = false;
  const write = async () => {
    if (isWriting) return;
    isWriting = true;
    try {
      const { agentId } = lease;
      for (const { sourceId, partitions } of lags.known()) await writeSourceLag(kv, { sourceId, agentId }, partitions);
    } catch (error) {
      log.debug({ error }, 'KV is away: the management API does not know the lag of sources.');
    } finally {
      isWriting = false;
    }
  };
  const timer = setInterval(() => void write(), everyMs).unref();
  return () => clearInterval(timer);
}
