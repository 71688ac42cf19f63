import type { HttpSource } from '@gateway/store/config';
import { TAKERS, writeSourceState, type Kv } from '@gateway/store/kv';

const SHOWN_MS = 3_600_000;
const SOURCES_MAX = 1_000;

/**
 * Most providers do not repeat a request with too large a body, so the source is shown as failing
 * for an hour. Never rejects.
 */
export function refusedBodies(
  kv: Kv,
): (source: Pick<HttpSource, 'project_id' | 'id'>, limit: number) => Promise<void> {
  const counts = new Map<string, { count: number; readonly sinceMs: number; writtenMs: number }>();
  return async ({ project_id: projectId, id: sourceId }, limit) => {
    const nowMs = Date.now();
    const before = counts.get(sourceId);
    const it =
      before && nowMs - before.sinceMs < SHOWN_MS
        ? before
        : { count: 0, sinceMs: nowMs, writtenMs: 0 };
    it.count++;
    counts.delete(sourceId);
    counts.set(sourceId, it);
    const [oldest] = counts.keys();
    if (counts.size > SOURCES_MAX && oldest !== undefined) counts.delete(oldest);
    // A client that repeats such requests must not cause as many writes.
    if (nowMs - it.writtenMs < 1_000) return;
    it.writtenMs = nowMs;
    const requests = it.count === 1 ? '1 request was' : `At least ${it.count} requests were`;
    const reason = `${requests} refused (413) since ${new Date(it.sinceMs).toISOString()}: a body was larger than ${limit} bytes. Let the provider send less, or an operator raise ingest.max_message_bytes.`;
    const state = { state: 'failing', reason, sinceMs: it.sinceMs, messages: null } as const;
    await writeSourceState(kv, { projectId, sourceId, agentId: TAKERS }, state, SHOWN_MS).catch(
      () => undefined,
    );
  };
}
