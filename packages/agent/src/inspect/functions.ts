import type { Config } from '@gateway/core/config';
import { silentLog } from '@gateway/core/logging';
import type { Database } from '@gateway/store/postgres';
import type { ReplayableMessage } from '@gateway/store/quarantine';
import { sandboxLimits } from '../ingest/transformer.js';
import type { DryRun } from './dry-run.js';
import { idleSandbox } from './idle-sandbox.js';
import { openPreviewer } from './preview.js';
import { openReplayer, type Replayed } from './replay.js';

/** Processes end when no function has run for so long. */
const IDLE_MS = 60_000;

/** Runs functions for a server, with the limits and the sandbox of an agent. Starts no process until a function runs. */
export function openFunctions(config: Pick<Config, 'transform' | 'ingest'>) {
  const sandbox = idleSandbox(sandboxLimits(config), IDLE_MS);
  const { preview, close } = openPreviewer(config, sandbox);
  return {
    preview,
    close,
    /** Replays quarantined messages at once, or tells what would become of them. Each result is settled: a failure of one leaves the others done. */
    async replay(
      pool: Database['pool'],
      messages: readonly ReplayableMessage[],
      { dryRun }: { readonly dryRun: boolean },
    ): Promise<PromiseSettledResult<DryRun | Replayed>[]> {
      const replayer = openReplayer({ config, database: { pool }, log: silentLog, sandbox });
      try {
        return await Promise.allSettled(messages.map((it) => (dryRun ? replayer.dryRun(it) : replayer.replay(it))));
      } finally {
        await replayer.close();
      }
    },
  };
}
