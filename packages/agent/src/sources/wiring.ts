import type { ActivatedPlugins } from '@gateway/core/plugins';
import { ProjectPace } from '@gateway/core/process';
import { EventWriter, type EventWriterOptions } from '@gateway/ingest/commit/event-writer';
import { Pipeline } from '@gateway/ingest/pipeline';
import { overrunRule, Overruns } from '@gateway/ingest/transform/overruns';
import { Transformer } from '@gateway/ingest/transform/transformer';
import type { AgentContext } from '../config/agent-context.js';
import { Throttle } from '../flow-control/throttle.js';
import type { Notifier } from '../notifications/notifier.js';
import { pausing, type PausingOptions } from './pause-sources.js';
import { publishLags } from './publish-lags.js';
import { SourceRunner } from './source-runner.js';
import { SourceLags } from './source-lags.js';

/** Concurrent commits of events, each on its own connection. */
export const COMMITTERS = 3;

interface SourceParts
  extends AgentContext, PausingOptions, Pick<EventWriterOptions, 'router' | 'usage'> {
  readonly plugins: ActivatedPlugins;
  readonly notifier: Notifier;
}

/** Connects the parts from the sources to the commit. */
export function wireSources({ plugins, ...given }: SourceParts) {
  const { config, configCache, measure } = given;
  const { ingest, limits } = config;
  const pace = new ProjectPace(limits.events_per_second);
  const eventWriter = new EventWriter({ ...given, pace, committers: COMMITTERS });
  const pauses = pausing(given);
  const transformer = new Transformer({
    ...given,
    overruns: new Overruns(overrunRule(config)),
    pause: pauses.pause,
  });
  const throttle = new Throttle({ ...given, ratePerSecond: config.instance_ingest_rate });
  const { max_message_bytes: maxMessageBytes } = ingest;
  const accepts = (projectId: string, eventType: string) =>
    configCache.accepts(projectId, eventType);
  const pipeline = new Pipeline({
    ...given,
    throttle,
    transformer,
    eventWriter,
    pace,
    maxMessageBytes,
    accepts,
  });
  const lags = new SourceLags();
  const sources = new SourceRunner({
    ...given,
    pipeline,
    transformer,
    lags,
    plugins: plugins.sources,
    openSecret: given.open,
    // More messages than the project may have accepted within a second would only fill memory.
    window: Math.min(ingest.window, limits.events_per_second || Infinity),
    maxWorkers: limits.workers_per_project,
    countLost:
      measure &&
      ((labels, messages) =>
        plugins.meter.add('gateway_source_lost_messages_total', { ...labels }, messages)),
  });
  const stopPublishing = publishLags({ ...given, lags });
  /** Stops reading; messages already read are committed and acknowledged. */
  const drainSources = (): Promise<void> => {
    pauses.close();
    pipeline.stop();
    return sources.stop();
  };
  return { pace, transformer, eventWriter, sources, lags, stopPublishing, drainSources };
}
