import { hash } from 'node:crypto';
import { hostname } from 'node:os';
import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { Message } from '@gateway/plugin';
import type { Sandbox } from '@gateway/sandbox';
import { pauseSource } from '@gateway/store/config';
import type { Database, Planes } from '@gateway/store/postgres';
import type { ReplayableMessage } from '@gateway/store/quarantine';
import type { CodecOf } from '../decode/codecs.js';
import type { IngestSource } from '../message/ingest-source.js';
import type { SourceMessage } from '../message/source-message.js';
import { idleSandbox, sandboxLimits } from '../transform/sandboxes.js';
import { overrunRule, Overruns } from '../transform/overruns.js';
import { transformedData } from '../transform/transformed-data.js';
import { unknownEventType } from '../validate/reject-codes.js';
import type { EventTypeCatalogue } from './event-type-catalogue.js';
import { type Prepare, preparing } from './prepare.js';
import { callOf, preview, type Preview, type SampleMessage } from './preview.js';
import { dryRun, type DryRun, replay, type Replayed } from './replay.js';

const RETRY_AFTER_SECONDS = 5;

interface FunctionsOptions {
  readonly config: Pick<Config, 'transform' | 'ingest'>;
  readonly database: Pick<Database, 'pool'>;
  readonly catalogue: Pick<EventTypeCatalogue, 'firstUnknown'>;
  readonly log: Pick<Log, 'warn'>;
  /** Undefined where no codec is known. */
  readonly codecOf?: CodecOf | undefined;
  /** Replaces the default sandbox, whose processes end after an idle minute. */
  readonly sandbox?: Pick<Sandbox, 'run' | 'close'>;
}

export interface TransformedSample extends Pick<Preview, 'refusal' | 'logs' | 'durationMs'> {
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
  codecOf,
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
  const prepare = preparing({ sandbox, maxMessageBytes });
  const prepareIngest = preparing({
    sandbox,
    maxMessageBytes,
    log,
    overruns: new Overruns(overrunRule(config)),
    async pause(projectId, sourceId, reason) {
      await pauseSource(database.pool, projectId, sourceId, {
        reason,
        by: `${hostname()}:${process.pid}`,
        facts: null,
        seconds: config.transform.pause_seconds,
      });
      log.warn(
        { source_id: sourceId, project_id: projectId, reason },
        'Paused a source whose function keeps overrunning.',
      );
    },
  });

  async function known(preparing: Promise<SourceMessage>): Promise<SourceMessage> {
    const message = await preparing;
    const types = message.events.map(({ eventType }) => eventType);
    const unknown = types.length > 0 && (await catalogue.firstUnknown(message.projectId, types));
    if (typeof unknown === 'string') message.reject(unknownEventType(unknown));
    return message;
  }

  return {
    preview: (text: string | null, sample: SampleMessage): Promise<Preview> =>
      preview(text, sample, prepare, codecOf),
    /**
     * As before an attempt.
     *
     * @param data the event data, as JSON text
     * @param message JSON, as `messageArgument` makes it
     */
    async transform(
      text: string,
      {
        data,
        projectId,
        message,
      }: { readonly data: string; readonly projectId: string; readonly message?: string },
    ): Promise<TransformedSample> {
      const key = `${projectId}:${hash('sha256', text, 'base64url')}`;
      const messages = message === undefined ? undefined : [message];
      const fn = { key, text, project: projectId };
      const [result] = await sandbox.run(fn, [data], undefined, messages);
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
      const prepareReplay: Prepare = (...given) => known(prepare(...given));
      const commit = { planes, idempotencyWindowSeconds, codecOf };
      return Promise.allSettled(
        messages.map((it) =>
          isDry ? dryRun(it, prepareReplay, codecOf) : replay(it, prepareReplay, commit),
        ),
      );
    },
    /** As an agent does, without committing. Sources whose functions overrun are paused. */
    accept: (source: IngestSource, message: Message): Promise<SourceMessage> =>
      known(prepareIngest(source, message)),
    close: () => own.close(),
  };
}
