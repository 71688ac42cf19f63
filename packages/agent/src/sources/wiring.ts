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

/** The number of concurrent event commits on a shard, each on its own connection. */
export const COMMITTERS = 3;

/** The parts that the workers of an agent share to read sources and commit. */
export interface SourceParts extends Pick<EventWriterOptions, 'usage' | 'smallCommitters'> {
  readonly plugins: ActivatedPlugins;
  readonly notifier: Notifier;
  readonly pauses: Pick<ReturnType<typeof pausing>, 'pause'>;
}

/** Wires the parts from the sources of a shard to the commit, last stage first. */
export function wireSources(
  {
    config,
    log,
    health,
    shard,
    pace,
    kv,
    buckets,
    configCache,
    open,
    sandbox,
    loopShares,
    lease,
    measure,
    tracing,
  }: AgentContext,
  {
    plugins,
    notifier,
    pauses,
    router,
    usage,
    smallCommitters,
  }: SourceParts & Pick<EventWriterOptions, 'router'>,
) {
  const { ingest, limits } = config;
  const data = shard.database;

  const eventWriter = new EventWriter({
    config,
    database: data,
    shard: shard.name,
    kv,
    log,
    measure,
    router,
    usage,
    pace,
    committers: COMMITTERS,
    smallCommitters,
  });

  const transformer = new Transformer({
    log,
    measure,
    sandbox,
    overruns: new Overruns(overrunRule(config)),
    pause: pauses.pause,
  });

  const throttle = new Throttle(buckets, config.instance_ingest_rate);
  const pipeline = new Pipeline({
    loopShares,
    measure,
    tracing,
    throttle,
    transformer,
    eventWriter,
    pace,
    maxMessageBytes: ingest.max_message_bytes,
    accepts: (projectId, eventType) => configCache.accepts(projectId, eventType),
  });

  const lags = new SourceLags();
  const sources = new SourceRunner({
    shard,
    configCache,
    health,
    log,
    lease,
    notifier,
    pipeline,
    transformer,
    lags,
    plugins: plugins.sources,
    pluginTable: plugins.table,
    openSecret: open,
    // Limited to the number of messages that a project may ingest per second: more would only fill
    // memory.
    window: Math.min(ingest.window, limits.events_per_second || Infinity),
    maxWorkers: limits.workers_per_project,
    countLost:
      measure &&
      ((labels, messages) =>
        plugins.meter.add('gateway_source_lost_messages_total', { ...labels }, messages)),
  });
  const stopPublishing = publishLags({ kv, lease, log, lags });

  /** Stops reading. Messages already read are committed and acknowledged. */
  const drainSources = (): Promise<void> => {
    pipeline.stop();
    return sources.stop();
  };
  return { transformer, eventWriter, sources, lags, stopPublishing, drainSources };
}
