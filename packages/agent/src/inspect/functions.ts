import { hash } from 'node:crypto';
import { hostname } from 'node:os';
import type { Config } from '@gateway/core/config';
import { silentLog } from '@gateway/core/logging';
import type { Message } from '@gateway/plugin';
import { eventTypeCatalogue, pauseSource } from '@gateway/store/config';
import type { KeptMessage } from '@gateway/store/events';
import type { Database } from '@gateway/store/postgres';
import type { QuarantinedMessage, ReplayableMessage } from '@gateway/store/quarantine';
import type { AgentContext } from '../config/agent-context.js';
import { transformedData } from '@gateway/ingest/transform/transformed-data';
import { overrunRule, Overruns } from '@gateway/ingest/transform/overruns';
import { sandboxLimits } from '@gateway/ingest/transform/transformer';
import type { ReadyEvent } from '@gateway/ingest/message/ready-message';
import type { IngestSource } from '@gateway/ingest/message/ingest-source';
import { unknownEventType } from '@gateway/ingest/message/reject-codes';
import type { DryRun } from './dry-run.js';
import { idleSandbox } from '@gateway/ingest/transform/idle-sandbox';
import { callOf, openPreviewer, type Preview } from './preview.js';
import { openReplayer, type Replayed } from './replay.js';
import { runOnce, type Ran } from './run-once.js';

/** Processes end when no function has run for so long. */
const IDLE_MS = 60_000;
/** Room for the event type of a message beside its body. */
const ENVELOPE_BYTES = 4_096;

export interface FunctionsOptions extends Pick<AgentContext, 'log'> {
  readonly config: Pick<Config, 'transform' | 'ingest'>;
  readonly database: Pick<Database, 'pool'>;
}

/** What becomes of a message: it is to be committed, or nothing is to be done. */
export type Accepted =
  | { readonly kind: 'accepted'; readonly events: readonly ReadyEvent[]; readonly kept: KeptMessage | null }
  | { readonly kind: 'quarantined'; readonly message: QuarantinedMessage }
  | { readonly kind: 'dropped' };

/** What the function of a subscription made of data. */
export interface TransformedSample extends Pick<Preview, 'refusal' | 'logs' | 'durationMs'> {
  readonly outcome: 'accepted' | 'dropped' | 'failed';
  readonly data: string | null;
}

export type Functions = ReturnType<typeof openFunctions>;

/** Runs messages and functions for a server, with the limits and the sandbox of an agent. Starts no process until a function runs. */
export function openFunctions({ config, database, log }: FunctionsOptions) {
  const sandbox = idleSandbox(sandboxLimits(config), IDLE_MS);
  const previewer = openPreviewer(config, sandbox);
  const maxMessageBytes = config.ingest.max_message_bytes + ENVELOPE_BYTES;
  const catalogue = eventTypeCatalogue(database.pool);
  const overruns = new Overruns(overrunRule(config));

  /** Pauses sources whose functions overrun, as agents do; those resume them. */
  async function count(source: IngestSource, called: Ran['called']): Promise<void> {
    const found = called && overruns.count(source, called);
    overruns.idle(source);
    if (!found || called.kind !== 'refused') return;
    const pause = { reason: `${found.happened}; of the last one: ${called.reason}`, by: `${hostname()}:${process.pid}`, facts: null };
    for (const id of found.sourceIds) {
      await pauseSource(database.pool, source.projectId, id, { ...pause, seconds: config.transform.pause_seconds });
      log.warn({ source_id: id, project_id: source.projectId, reason: pause.reason }, 'A source is paused, because its function overruns.');
    }
  }

  return {
    preview: previewer.preview,
    close: previewer.close,
    /** Runs the function of a subscription as an agent does before an attempt. @throws SandboxError when functions cannot run on this machine */
    async transform(text: string, { data, projectId }: { readonly data: string; readonly projectId: string }): Promise<TransformedSample> {
      const key = `${projectId}:${hash('sha256', text, 'base64url')}`;
      const [result] = await sandbox.run({ key, text, project: projectId }, [data]);
      const made = transformedData(result!);
      const refusal = made.kind === 'failed' ? { code: `transform_${made.code}`, reason: made.reason } : null;
      const outcome = made.kind === 'made' ? 'accepted' : made.kind;
      return { outcome, data: made.kind === 'made' ? made.data : null, refusal, ...callOf(result) };
    },
    /** Replays quarantined messages at once, or tells what would become of them. Each result is settled: a failure of one leaves the others done. */
    async replay(
      messages: readonly ReplayableMessage[],
      { dryRun }: { readonly dryRun: boolean },
    ): Promise<PromiseSettledResult<DryRun | Replayed>[]> {
      const replayer = openReplayer({ config, database, log: silentLog, sandbox });
      try {
        return await Promise.allSettled(messages.map((it) => (dryRun ? replayer.dryRun(it) : replayer.replay(it))));
      } finally {
        await replayer.close();
      }
    },
    /** Transforms and parses a message as an agent does, without its commit. @throws SandboxError when functions cannot run on this machine */
    async accept(source: IngestSource, message: Message): Promise<Accepted> {
      const { ready, called } = await runOnce(source, message, { sandbox, maxMessageBytes });
      await count(source, called).catch((error: unknown) => log.warn({ error }, 'A source that overruns could not be paused.'));
      if (ready === 'dropped') return { kind: 'dropped' };
      const types = ready.events.map(({ eventType }) => eventType);
      const unknown = await catalogue.firstUnknown(source.projectId, types);
      if (unknown !== undefined) ready.reject(unknownEventType(unknown));
      const { quarantined, events, kept = null } = ready;
      return quarantined ? { kind: 'quarantined', message: quarantined } : { kind: 'accepted', events, kept };
    },
  };
}
