import type { Log } from '@gateway/core/logging';
import type { Config } from '@gateway/core/config';
import { openReplayer, type Replayed, type DryRun } from '@gateway/agent/inspect';
import type { Database } from '@gateway/store/postgres';
import { readReplayable, type QuarantineEntry, type QuarantineRef, type ReplayableMessage } from '@gateway/store/quarantine';
import { openSignals } from './signals.js';

/** What is read into memory at a time. */
const GROUP_MESSAGES = 50;
const GROUP_BYTES = 32 * 1024 * 1024;
/** Messages under way at a time, each with a connection for its commit: Postgres writes what commits together at once, and transforms go in batches. */
export const UNDER_WAY = 16;

export type Result = Replayed | DryRun;

export interface ReplayOptions {
  readonly config: Config;
  readonly database: Database;
  readonly log: Log;
  /** Only tell what would become of them. */
  readonly dryRun: boolean;
  /** Called once when KV is not to be had. */
  readonly onKvAway: () => void;
  /** Called for each message, in order. */
  readonly onResult: (id: string, result: Result) => void;
}

/**
 * Sends messages on their way again, in bounded memory, and signals their events to the agents.
 *
 * @throws what keeps it from going on, such as an error of Postgres; what is done by then stays done and was told
 */
export async function replayAll(pages: AsyncIterable<readonly QuarantineEntry[]>, options: ReplayOptions): Promise<void> {
  const { config, database, log, dryRun, onKvAway, onResult } = options;
  const replayer = openReplayer({ config, database, log });
  const signals = dryRun ? undefined : await openSignals(config, onKvAway);
  try {
    for await (const page of pages) {
      for (const group of groups(page)) {
        const results = new Map<string, Result>();
        const replayed: QuarantineRef[] = [];
        try {
          const messages = await readReplayable(database.pool, group.map(refOf));
          await several(messages, async (message) => {
            const result = dryRun ? await replayer.dryRun(message) : await replayer.replay(message);
            results.set(message.id, result);
            if (result.kind === 'replayed') replayed.push(...result.ids.map((id) => ({ projectId: message.projectId, id })));
          });
        } finally {
          for (const { id } of group) {
            const result = results.get(id);
            if (result) onResult(id, result);
          }
          await signals?.push(replayed);
        }
      }
    }
  } finally {
    await Promise.all([replayer.close(), signals?.close()]);
  }
}

function refOf({ project_id: projectId, id }: QuarantineEntry): QuarantineRef {
  return { projectId, id };
}

/** Parts that fit into memory; a message that is too large by itself is a part of its own. */
function* groups(page: readonly QuarantineEntry[]): Generator<QuarantineEntry[]> {
  let group: QuarantineEntry[] = [];
  let bytes = 0;
  for (const entry of page) {
    if (group.length === GROUP_MESSAGES || (group.length > 0 && bytes + entry.raw_bytes > GROUP_BYTES)) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(entry);
    bytes += entry.raw_bytes;
  }
  if (group.length > 0) yield group;
}

/** Works on several at a time. Resolves, or rejects with the first error, when nothing is under way any more. */
async function several(messages: readonly ReplayableMessage[], work: (message: ReplayableMessage) => Promise<void>): Promise<void> {
  const waiting = [...messages];
  const failures: unknown[] = [];
  const worker = async () => {
    for (let next = waiting.shift(); next && failures.length === 0; next = waiting.shift())
      await work(next).catch((error: unknown) => failures.push(error));
  };
  await Promise.all(Array.from({ length: UNDER_WAY }, worker));
  if (failures.length > 0) throw failures[0];
}
