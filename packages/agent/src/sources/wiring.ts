import type { ActivatedPlugins } from '@gateway/core/plugins';
import { EventWriter, type EventWriterOptions } from '@gateway/ingest/commit/event-writer';
import { Pipeline } from '@gateway/ingest/pipeline';
import { overrunRule, Overruns } from '@gateway/ingest/transform/overruns';
import { Transformer } from '@gateway/ingest/transform/transformer';
import type { AgentContext } from '../config/agent-context.js';
import { Throttle } from '../flow-control/throttle.js';
import type { Notifier } from '../notifications/notifier.js';
import { pausing } from './pause-sources.js';
import { publishLags } from './publish-lags.js';
import { SourceRunner } from './source-runner.js';
import { SourceLags } from './source-lags.js';

/**
 * The number of concurrent event commits of a plane, each on its own connection. With several shards,
 * only one of them commits small messages: their batches stay large although each shard has batches
 * of its own.
 */
export const COMMITTERS = 3;

interface SourceParts extends Pick<EventWriterOptions, 'router' | 'usage'> {
  readonly plugins: ActivatedPlugins;
  readonly notifier: Notifier;
  /** Identifies this agent in source pauses. */
  readonly name: string;
}

/** Wires the parts from the sources to the commit, last stage first. */
export function wireSources(
  {
    config,
    log,
    health,
    database,
    shard,
    shardCount,
    pace,
    kv,
    configCache,
    open,
    sandbox,
    loopShares,
    lease,
    measure,
    tracing,
  }: AgentContext,
  { plugins, notifier, name, router, usage }: SourceParts,
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
    smallCommitters: shardCount > 1 ? 1 : COMMITTERS,
  });

  const pauses = pausing({ config, database, configCache, log, name, notifier });
  const transformer = new Transformer({
    log,
    measure,
    sandbox,
    overruns: new Overruns(overrunRule(config)),
    pause: pauses.pause,
  });

  const throttle = new Throttle({ kv, lease, log, ratePerSecond: config.instance_ingest_rate });
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
    pauses.close();
    pipeline.stop();
    return sources.stop();
  };
  return { transformer, eventWriter, sources, lags, stopPublishing, drainSources };
}
