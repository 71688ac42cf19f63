import type { TracerPlugin } from '@gateway/plugin';
import { listed } from '../run/rule.js';
import { runSuite, type Suite, type ConformanceOptions, type Openable, type RuleResult } from '../run/run-rules.js';
import { TracerBench } from './bench.js';
import { lifecycleRules } from './lifecycle.js';
import type { TracerRig } from './rig.js';
import { spanRules } from './spans.js';

const suite: Suite<TracerPlugin, TracerRig, TracerBench> = {
  // Each rule runs alone: a process has one tracer provider.
  rules: Object.fromEntries(Object.entries({ ...spanRules, ...lifecycleRules }).map(([name, rule]) => [name, { ...rule, alone: true }])),
  collectsErrors: true,
  bench: TracerBench,
};

/** The rules of tracers, in the order of their results. */
export const tracerRules = listed(suite.rules);

/**
 * Runs every rule on a tracer plugin. No other tracer may run in the process meanwhile.
 * @throws what the rig throws when it is opened
 */
export function tracerConformance<Settings>(
  plugin: TracerPlugin<Settings>,
  rig: Openable<TracerRig<Settings>>,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  return runSuite(suite, plugin as TracerPlugin, rig as Openable<TracerRig>, options);
}
