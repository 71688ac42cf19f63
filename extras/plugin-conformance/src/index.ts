/**
 * The conformance suites: named rules for each kind of plugin. They need no test runner:
 *
 * ```js
 * import { sourceConformance } from '@gateway/plugin-conformance';
 * const results = sourceConformance(plugin, openRig);
 * for await (const { outcome, rule } of results) console.log(outcome, rule);
 * ```
 */
import {
  PluginError,
  type CodecPlugin,
  type MetricsPlugin,
  type PluginKind,
  type SourcePlugin,
  type TracerPlugin,
} from '@gateway/plugin';
import { CodecBench, codecRules as codec, type CodecRig } from './codec.js';
import { MetricsBench, metricsRules as metrics, type MetricsRig } from './metrics.js';
import { listed } from './run/rule.js';
import {
  runSuite,
  type ConformanceOptions,
  type Openable,
  type RuleResult,
} from './run/run-rules.js';
import { acknowledgingRules } from './source/acknowledging.js';
import { SourceBench } from './source/bench.js';
import { failingRules } from './source/failing.js';
import { processRules } from './source/process.js';
import { readingRules } from './source/reading.js';
import type { SourceRig } from './source/rig.js';
import { TracerBench, tracerRules as tracer, type TracerRig } from './tracer.js';

export type { CodecRig, CodecSample } from './codec.js';
export type { MetricsRig, Sample } from './metrics.js';
export type { ConformanceOptions, Openable, RuleResult } from './run/run-rules.js';
export type { KillableReader, ReaderOptions } from './source/reader-process.js';
export type { BreakablePlace, Place, SentMessage, SourceRig } from './source/rig.js';
export type { ReceivedSpan, Receiver, TracerRig } from './tracer.js';

const source = {
  ...readingRules,
  ...acknowledgingRules,
  ...failingRules,
  ...processRules,
};

export const [sourceRules, codecRules, tracerRules, metricsRules] = [
  listed(source),
  listed(codec),
  listed(tracer),
  listed(metrics),
];

/**
 * Runs every rule against a source plugin. Takes up to half a minute, depending on the broker.
 * @throws `PluginError` if the rig fails to open or close
 */
export function sourceConformance<Connection>(
  plugin: SourcePlugin<Connection>,
  rig: Openable<SourceRig<Connection>>,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  return runSuite(
    { rules: source, bench: SourceBench },
    plugin as SourcePlugin,
    rig as Openable<SourceRig>,
    options,
  );
}

/** As `sourceConformance`, for a codec. */
export function codecConformance<Settings>(
  plugin: CodecPlugin<Settings>,
  rig: Openable<CodecRig<Settings>>,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  return runSuite(
    { rules: codec, bench: CodecBench },
    plugin as CodecPlugin,
    rig as Openable<CodecRig>,
    options,
  );
}

/** As `sourceConformance`, but one rule at a time: a process has a single tracer provider. */
export function tracerConformance<Settings>(
  plugin: TracerPlugin<Settings>,
  rig: Openable<TracerRig<Settings>>,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  return runSuite(
    { rules: tracer, bench: TracerBench },
    plugin as TracerPlugin,
    rig as Openable<TracerRig>,
    { ...options, atOnce: 1 },
  );
}

/** As `sourceConformance`, for a metrics backend. */
export function metricsConformance<Settings>(
  plugin: MetricsPlugin<Settings>,
  rig: Openable<MetricsRig<Settings>>,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  return runSuite(
    { rules: metrics, bench: MetricsBench },
    plugin as MetricsPlugin,
    rig as Openable<MetricsRig>,
    options,
  );
}

const kinds = {
  source: { run: sourceConformance, functions: ['check', 'run'] },
  codec: { run: codecConformance, functions: ['open'] },
  tracer: { run: tracerConformance, functions: ['start'] },
  metrics: { run: metricsConformance, functions: ['start'] },
};

/**
 * Runs the suite for this kind of plugin.
 * @param plugin the default export of its module
 * @param rig the default export of its `conformance` module: a rig or a function that opens one
 * @throws `PluginError` if either is invalid
 */
export function conformance(
  kind: PluginKind,
  plugin: unknown,
  rig: unknown,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  const { run, functions } = kinds[kind];
  const missing = functions.filter(
    (name) => typeof (plugin as Record<string, unknown> | null | undefined)?.[name] !== 'function',
  );
  if (missing.length > 0) {
    throw new PluginError(
      `The default export of this ${kind} plugin has no function \`${missing.join('` and no function `')}\`.`,
      {
        fix: `Export { ${functions.join(', ')} } as the default, as the contract of a ${kind} says.`,
      },
    );
  }
  if (typeof rig !== 'function' && (typeof rig !== 'object' || rig === null)) {
    throw new PluginError('The conformance module has no rig as its default export.', {
      fix: `Export the rig of a ${kind}, or a function that opens it, as the default.`,
    });
  }
  return run(plugin as never, rig as never, options);
}
