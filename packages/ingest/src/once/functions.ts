import { hash } from 'node:crypto';
import { hostname } from 'node:os';
import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { Sandbox } from '@gateway/sandbox';
import { type EventTypeCatalogue, pauseSource } from '@gateway/store/config';
import type { Database, Planes } from '@gateway/store/postgres';
import type { ReplayableMessage } from '@gateway/store/quarantine';
import type { IngestSource } from '../message/ingest-source.js';
import type { ReadyMessage } from '../message/ready-message.js';
import type { GivenMessage } from '../message/source-message.js';
import { idleSandbox, sandboxLimits } from '../transform/sandboxes.js';
import { overrunRule, Overruns } from '../transform/overruns.js';
import { transformedData } from '../transform/transformed-data.js';
import { callOf, preview, type Preview, type SampleMessage } from './preview.js';
import { dryRun, type DryRun, replay, type Replayed } from './replay.js';
import { type Ran, runOnce, type RunOnceOptions } from './run-once.js';

const RETRY_AFTER_SECONDS = 5;

interface FunctionsOptions {
  readonly config: Pick<Config, 'transform' | 'ingest'>;
  readonly database: Pick<Database, 'pool'>;
  readonly catalogue: Pick<EventTypeCatalogue, 'firstUnknown'>;
  readonly log: Pick<Log, 'warn'>;
  /** Replaces the default sandbox, whose processes end after an idle minute. */
  readonly sandbox?: Pick<Sandbox, 'run' | 'close'>;
}

interface TransformedSample extends Pick<Preview, 'refusal' | 'logs' | 'durationMs'> {
  readonly outcome: 'accepted' | 'dropped' | 'failed';
  /** JSON text, or null unless the outcome is `accepted`. */
  readonly data: string | null;
}

export type Functions = ReturnType<typeof openFunctions>;

/**
 * For an API, with the limits of an agent. Processes start on demand. Calls reject with
 * `functions_unavailable` if functions cannot be run.
 */
export function openFunctions({
  config,
  database,
  catalogue,
  log,
  sandbox: given,
}: FunctionsOptions) {
  const own = given ?? idleSandbox(sandboxLimits(config));
  const sandbox: Pick<Sandbox, 'run'> = {
    run: (...call) =>
      own.run(...call).catch((cause: Error) => {
        throw new GatewayError(
          'functions_unavailable',
          { reason: cause.message, retryAfterSeconds: RETRY_AFTER_SECONDS },
          { cause },
        );
      }),
  };
  const {
    max_message_bytes: maxMessageBytes,
    idempotency_window_seconds: idempotencyWindowSeconds,
  } = config.ingest;
  const options: RunOnceOptions = { sandbox, maxMessageBytes };
  const overruns = new Overruns(overrunRule(config));

  /** As agents do, counts overruns and pauses overrunning sources. Agents resume these sources. */
  async function count(source: IngestSource, called: Ran['called']): Promise<void> {
    const found = called && overruns.count(source, called);
    overruns.idle(source);
    if (!found || called.kind !== 'refused') return;
    const pause = {
      reason: `${found.happened}; the last one: ${called.reason}`,
      by: `${hostname()}:${process.pid}`,
      facts: null,
    };
    for (const id of found.sourceIds) {
      await pauseSource(database.pool, source.projectId, id, {
        ...pause,
        seconds: config.transform.pause_seconds,
      });
      log.warn(
        { source_id: id, project_id: source.projectId, reason: pause.reason },
        'Paused a source whose function keeps overrunning.',
      );
    }
  }

  return {
    preview: (text: string | null, sample: SampleMessage): Promise<Preview> =>
      preview(text, sample, options),
    /**
     * As before an attempt.
     *
     * @param data the event data, as JSON text
     */
    async transform(
      text: string,
      { data, projectId }: { readonly data: string; readonly projectId: string },
    ): Promise<TransformedSample> {
      const key = `${projectId}:${hash('sha256', text, 'base64url')}`;
      const [result] = await sandbox.run({ key, text, project: projectId }, [data]);
      const made = transformedData(result!);
      const refusal =
        made.kind === 'failed' ? { code: `transform_${made.code}`, reason: made.reason } : null;
      const outcome = made.kind === 'made' ? 'accepted' : made.kind;
      return { outcome, data: made.kind === 'made' ? made.data : null, refusal, ...callOf(result) };
    },
    /** Quarantined messages of one shard, concurrently. A dry run only shows the results. */
    replay(
      messages: readonly ReplayableMessage[],
      { planes, dryRun: isDry }: { readonly planes: Planes; readonly dryRun: boolean },
    ): Promise<PromiseSettledResult<DryRun | Replayed>[]> {
      const checked = { ...options, catalogue, planes, idempotencyWindowSeconds };
      return Promise.allSettled(
        messages.map((it) => (isDry ? dryRun(it, checked) : replay(it, checked))),
      );
    },
    /** As an agent does, without committing. */
    async accept(source: IngestSource, message: GivenMessage): Promise<ReadyMessage | 'dropped'> {
      const { ready, called } = await runOnce(source, message, { ...options, catalogue });
      await count(source, called).catch((error: unknown) =>
        log.warn({ error }, 'Could not pause a source whose function keeps overrunning.'),
      );
      return ready;
    },
    close: () => own.close(),
  };
}
