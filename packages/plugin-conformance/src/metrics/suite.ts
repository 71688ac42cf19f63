import type { MetricsPlugin } from '@gateway/plugin';
import { judgeAll, listed, withRig } from '../run/judge.js';
import type { MetricsRig } from './rig.js';
import { rules } from './rules.js';
import type { ConformanceOptions, Openable, RuleResult } from '../run/result.js';

/** The rules of metrics backends, in the order of their results. */
export const metricsRules = listed(rules);

/**
 * Judges a metrics backend by every rule, one result each.
 * @throws what the rig throws when it is opened
 */
export function metricsConformance<Settings>(
  plugin: MetricsPlugin<Settings>,
  rig: Openable<MetricsRig<Settings>>,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  const { withinMs = 10_000 } = options;
  return withRig(rig, (opened) => judgeAll(rules, { plugin: plugin as MetricsPlugin, rig: opened as MetricsRig, withinMs }, options));
}
