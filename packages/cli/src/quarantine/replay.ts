import { openReplayer, type DryRun, type Replayed } from '@gateway/agent/inspect';
import type { Config } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import { encodeSignal } from '@gateway/store/events';
import { openKv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import { readReplayable, type QuarantineEntry, type QuarantineRef, type ReplayableMessage } from '@gateway/store/quarantine';
import { retryUntil } from '../app/kv.js';
import type { Pages } from './selection.js';

/** What is read into memory at a time. */
const GROUP_MESSAGES = 50;
const GROUP_BYTES = 32 * 1024 * 1024;
/** Messages in progress, each with a connection for its commit: Postgres flushes concurrent commits together, and transforms go in batches. */
export const CONCURRENT_MESSAGES = 16;
/** How long KV is waited for; agents find events without a signal seconds later. */
const KV_PATIENCE_MS = 1_000;

export type Result = Replayed | DryRun;

export interface ReplayOptions {
  readonly config: Config;
  readonly database: Database;
  readonly log: Log;
  /** Change nothing; report what would become of the messages. */
  readonly dryRun: boolean;
  /** Called once when KV cannot be reached. */
  readonly onKvAway: () => void;
  /** Called for each message that is not quarantined. */
  readonly onSkipped: (entry: QuarantineEntry) => void;
  /** Called for each other message, in order. */
  readonly onResult: (id: string, result: Result) => void;
}

/**
 * Replays messages in bounded memory, and signals their events to the agents.
 *
 * @throws what keeps it from continuing, such as an error of Postgres; what is done by then stays done and was reported
 */
export async function replayAll(pages: Pages, options: ReplayOptions): Promise<void> {
  const { config, database, log, dryRun, onKvAway, onSkipped, onResult } = options;
  const replayer = openReplayer({ config, database, log });
  const signals = dryRun ? undefined : await openSignals(config, onKvAway);
  try {
    for await (const page of pages) {
      page.filter(({ status }) => status !== 'quarantined').forEach(onSkipped);
      for (const group of groups(page.filter(({ status }) => status === 'quarantined'))) {
        const results = new Map<string, Result>();
        const replayed: QuarantineRef[] = [];
        try {
          const refs = group.map(({ project_id: projectId, id }) => ({ projectId, id }));
          await concurrently(await readReplayable(database.pool, refs), async (message) => {
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

/** Opens KV to signal pending events to the agents. Throws `tls_file` when a file of `kv.tls` cannot be used. */
async function openSignals(config: Config, onKvAway: () => void) {
  // The memory of this process reaches no agent.
  if (config.kv.type === 'in-memory') return undefined;
  const kv = openKv(config.kv, () => undefined);
  let isAway = false;
  const lost = () => {
    if (!isAway) onKvAway();
    isAway = true;
  };
  await retryUntil(
    () => kv.ping(),
    (waitedMs) => waitedMs < KV_PATIENCE_MS,
  ).catch(lost);
  return {
    async push(events: readonly QuarantineRef[]): Promise<void> {
      if (!isAway && events.length > 0) await kv.queue('create-event').push(events.map(encodeSignal)).catch(lost);
    },
    close: () => kv.close(),
  };
}

/** A log for a person at a terminal: warnings and errors as sentences on standard error. */
export const stderrLog: Log = {
  debugging: false,
  debug: () => undefined,
  info: () => undefined,
  warn: (_fields, sentence) => void process.stderr.write(`warning: ${sentence}\n`),
  error: (_fields, sentence) => void process.stderr.write(`error: ${sentence}\n`),
  child: () => stderrLog,
};

/** Groups that fit into memory; a message that is too large by itself is a group of its own. */
function* groups(entries: readonly QuarantineEntry[]): Generator<QuarantineEntry[]> {
  let group: QuarantineEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
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

/** Works on several messages at a time. Settles when all work has ended, rejected with the first error. */
async function concurrently(messages: readonly ReplayableMessage[], work: (message: ReplayableMessage) => Promise<void>): Promise<void> {
  const waiting = [...messages];
  const failures: unknown[] = [];
  const worker = async () => {
    for (let next = waiting.shift(); next && failures.length === 0; next = waiting.shift())
      await work(next).catch((error: unknown) => failures.push(error));
  };
  await Promise.all(Array.from({ length: CONCURRENT_MESSAGES }, worker));
  if (failures.length > 0) throw failures[0];
}
