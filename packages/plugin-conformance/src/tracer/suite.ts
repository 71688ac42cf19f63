import type { TracerPlugin } from '@gateway/plugin';
import { judgeWatched, listed, type Rule } from '../run/judge.js';
import type { ConformanceOptions, Openable, RuleResult } from '../run/result.js';
import type { TracerRig } from './rig.js';
import { lifeRules } from './lifecycle.js';
import { spanRules } from './spans.js';
import { onStage, type TracerBench } from './bench.js';

const rules: readonly Rule<TracerBench>[] = [...spanRules, ...lifeRules].map(onStage);

/** The rules of tracers, in the order of their results. */
export const tracerRules = listed(rules);

/**
 * Judges a tracer plugin by every rule, one result each. No other tracer may run in the process meanwhile.
 * @throws what the rig throws when it is opened
 */
export function tracerConformance<Settings>(
  plugin: TracerPlugin<Settings>,
  rig: Openable<TracerRig<Settings>>,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  return judgeWatched(rules, plugin as TracerPlugin, rig as Openable<TracerRig>, options);
}
