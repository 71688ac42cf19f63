/**
 * The conformance suites: what the gateway relies on, one named rule each, for every kind of plugin. They need no test runner:
 *
 * ```js
 * import { sourceConformance } from '@gateway/plugin-conformance';
 * for await (const result of sourceConformance(plugin, openRig)) console.log(result.outcome, result.rule);
 * ```
 */
import { PluginError, type MetricsPlugin, type PluginKind, type SourcePlugin, type TracerPlugin } from '@gateway/plugin';
import { MetricsBench, type MetricsRig } from './metrics/bench.js';
import { metricsRules as metrics } from './metrics/rules.js';
import { listed } from './run/rule.js';
import { runSuite, type ConformanceOptions, type Openable, type RuleResult } from './run/run-rules.js';
import { acknowledgingRules } from './source/acknowledging.js';
import { SourceBench } from './source/bench.js';
import { endingRules } from './source/ending.js';
import { failingRules } from './source/failing.js';
import { lagRules } from './source/lag.js';
import { processRules } from './source/process.js';
import { readingRules } from './source/reading.js';
import type { SourceRig } from './source/rig.js';
import { windowRules } from './source/window.js';
import { TracerBench, type TracerRig } from './tracer/bench.js';
import { lifecycleRules } from './tracer/lifecycle.js';
import { spanRules } from './tracer/spans.js';

export type { MetricsRig } from './metrics/bench.js';
export type { Family, Sample } from './metrics/exposition.js';
export type { ConformanceOptions, Openable, RuleResult } from './run/run-rules.js';
export type { KillableReader, ReaderOptions } from './source/reader-process.js';
export type { BreakablePlace, Place, SentMessage, SourceRig } from './source/rig.js';
export type { ReceivedSpan, Receiver, TracerRig } from './tracer/bench.js';

const source = { ...readingRules, ...windowRules, ...acknowledgingRules, ...endingRules, ...failingRules, ...lagRules, ...processRules };
const tracer = { ...spanRules, ...lifecycleRules };

/** The rules of each kind of plugin, in the order of their results. */
export const [sourceRules, tracerRules, metricsRules] = [listed(source), listed(tracer), listed(metrics)];

/**
 * Runs every rule on a source plugin. Takes from a few seconds to half a minute, depending on the broker.
 * @throws `PluginError` when the rig fails to open or to close
 */
export function sourceConformance<Connection>(
  plugin: SourcePlugin<Connection>,
  rig: Openable<SourceRig<Connection>>,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  return runSuite({ rules: source, bench: SourceBench }, plugin as SourcePlugin, rig as Openable<SourceRig>, options);
}

/** As `sourceConformance`, on a tracer plugin, one rule at a time: a process has one tracer provider, and no other tracer may run meanwhile. */
export function tracerConformance<Settings>(
  plugin: TracerPlugin<Settings>,
  rig: Openable<TracerRig<Settings>>,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  return runSuite({ rules: tracer, bench: TracerBench }, plugin as TracerPlugin, rig as Openable<TracerRig>, { ...options, atOnce: 1 });
}

/** As `sourceConformance`, on a metrics backend. */
export function metricsConformance<Settings>(
  plugin: MetricsPlugin<Settings>,
  rig: Openable<MetricsRig<Settings>>,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  return runSuite({ rules: metrics, bench: MetricsBench }, plugin as MetricsPlugin, rig as Openable<MetricsRig>, options);
}

const kinds = {
  source: { run: sourceConformance, functions: ['check', 'run'] },
  tracer: { run: tracerConformance, functions: ['start'] },
  metrics: { run: metricsConformance, functions: ['start'] },
};

/**
 * Runs the suite of this kind.
 * @param plugin the default export of the plugin's module
 * @param rig the default export of its `conformance` module: a rig or a function that opens one
 * @throws `PluginError` when one of the two is not what it should be
 */
export function conformance(kind: PluginKind, plugin: unknown, rig: unknown, options: ConformanceOptions = {}): AsyncIterable<RuleResult> {
  const { run, functions } = kinds[kind];
  const missing = functions.filter((name) => typeof (plugin as Record<string, unknown> | null | undefined)?.[name] !== 'function');
  if (missing.length > 0) {
    throw new PluginError(`The default export of this ${kind} plugin has no function \`${missing.join('` and no function `')}\`.`, {
      fix: `Export { ${functions.join(', ')} } as the default, as the contract of a ${kind} says.`,
    });
  }
  if (typeof rig !== 'function' && (typeof rig !== 'object' || rig === null)) {
    throw new PluginError('The conformance module has no rig as its default export.', {
      fix: `Export the rig of a ${kind}, or a function that opens it, as the default.`,
    });
  }
  return run(plugin as never, rig as never, options);
}
