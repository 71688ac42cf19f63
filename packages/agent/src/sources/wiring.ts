import type { ActivatedPlugins } from '@gateway/core/plugins';
import { EventWriter, type EventWriterOptions } from '@gateway/ingest/commit/event-writer';
import { Pipeline } from '@gateway/ingest/pipeline';
import { overrunRule, Overruns } from '@gateway/ingest/transform/overruns';
import { Transformer } from '@gateway/ingest/transform/transformer';
import type { AgentContext } from '../config/agent-context.js';
import { Throttle } from '../flow-control/throttle.js';
import type { Notifier } from '../notifications/notifier.js';
import type { pausing } from './pause-sources.js';
import { publishLags } from './publish-lags.js';
import { SourceRunner } from './source-runner.js';
import { SourceLags } from './source-lags.js';
import { RecordedPositions } from './recorded-positions.js';

/** The number of concurrent event commits on a shard, each on its own connection. */
export const COMMITTERS = 3;

export interface SourceParts extends Pick<EventWriterOptions, 'usage'> {
  readonly plugins: ActivatedPlugins;
  readonly notifier: Notifier;
  readonly pauses: Pick<ReturnType<typeof pausing>, 'pause'>;
}

export function wireSources(
  context: AgentContext,
  { plugins, notifier, pauses, router, usage }: SourceParts & Pick<EventWriterOptions, 'router'>,
) {
  const { config, configCache, shard, open, measure } = context;
  const { ingest, limits } = config;

  const eventWriter = new EventWriter({
    ...context,
    database: shard.database,
    shard: shard.name,
    router,
    usage,
    committers: COMMITTERS,
  });

  const isOrdered = (projectId: string) => router.isOrdered(projectId);
  const transformer = new Transformer({
    ...context,
    isOrdered,
    overruns: new Overruns(overrunRule(config)),
    pause: pauses.pause,
  });

  const pipeline = new Pipeline({
    ...context,
    isOrdered,
    throttle: new Throttle(context.buckets, config.instance_ingest_rate),
    transformer,
    eventWriter,
    maxMessageBytes: ingest.max_message_bytes,
    accepts: (projectId, eventType) => configCache.accepts(projectId, eventType),
  });

  const lags = new SourceLags();
  const positions = new RecordedPositions(context);
  const sources = new SourceRunner({
    ...context,
    notifier,
    pipeline,
    transformer,
    lags,
    positions,
    plugins: plugins.sources,
    pushSources: plugins.pushSources,
    codecs: plugins.codecs,
    pluginTable: plugins.table,
    openSecret: open,
    // Limited to the number of messages that a project may ingest per second: more would only fill
    // memory.
    window: Math.min(ingest.window, limits.events_per_second || Infinity),
    countLost:
      measure &&
      ((labels, messages) =>
        plugins.meter.add('gateway_source_lost_messages_total', { ...labels }, messages)),
  });
  const stopPublishing = publishLags({ ...context, lags });

  const drainSources = async (): Promise<void> => {
    pipeline.stop();
    await sources.stop();
    positions.close();
  };
  return { transformer, eventWriter, sources, lags, stopPublishing, drainSources };
}
