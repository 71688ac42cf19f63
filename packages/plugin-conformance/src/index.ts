/**
 * The conformance suites: what the gateway relies on, one named rule each, for every kind of plugin. They need no test runner:
 *
 * ```js
 * import { sourceConformance } from '@gateway/plugin-conformance';
 * for await (const result of sourceConformance(plugin, openRig)) console.log(result.outcome, result.rule);
 * ```
 */
import { PluginError, type MetricsPlugin, type PluginKind, type SourcePlugin, type TracerPlugin } from '@gateway/plugin';
import type { MetricsRig } from './metrics/rig.js';
import { metricsConformance } from './metrics/rules.js';
import type { ConformanceOptions, Openable, RuleResult } from './run/run-rules.js';
import type { SourceRig } from './source/rig.js';
import { sourceConformance } from './source/suite.js';
import type { TracerRig } from './tracer/rig.js';
import { tracerConformance } from './tracer/suite.js';

export type { Family, MetricsRig, Sample } from './metrics/rig.js';
export { metricsConformance, metricsRules } from './metrics/rules.js';
export type { ConformanceOptions, Openable, RuleResult } from './run/run-rules.js';
export type { BreakablePlace, Place, SentMessage, SourceRig } from './source/rig.js';
export { sourceConformance, sourceRules } from './source/suite.js';
export type { ReceivedSpan, Receiver, TracerRig } from './tracer/rig.js';
export { tracerConformance, tracerRules } from './tracer/suite.js';

/**
 * Runs the suite of this kind.
 * @param plugin the default export of the plugin's module
 * @param rig the default export of its `conformance` module: a rig or a function that opens one
 * @throws `PluginError` when one of the two is not what it should be
 */
export function conformance(kind: PluginKind, plugin: unknown, rig: unknown, options: ConformanceOptions = {}): AsyncIterable<RuleResult> {
  const functions = { source: ['check', 'run'], tracer: ['start'], metrics: ['start'] }[kind];
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
  switch (kind) {
    case 'source':
      return sourceConformance(plugin as SourcePlugin, rig as Openable<SourceRig>, options);
    case 'tracer':
      return tracerConformance(plugin as TracerPlugin, rig as Openable<TracerRig>, options);
    case 'metrics':
      return metricsConformance(plugin as MetricsPlugin, rig as Openable<MetricsRig>, options);
  }
}
