import type { SourcePlugin } from '@gateway/plugin';
import { listed } from '../run/rule.js';
import { runSuite, type Suite, type ConformanceOptions, type Openable, type RuleResult } from '../run/run-rules.js';
import { acknowledgingRules } from './acknowledging.js';
import { SourceBench } from './bench.js';
import { endingRules } from './ending.js';
import { failingRules } from './failing.js';
import { lagRules } from './lag.js';
import { processRules } from './process.js';
import { readingRules } from './reading.js';
import type { SourceRig } from './rig.js';
import { windowRules } from './window.js';

const suite: Suite<SourcePlugin, SourceRig, SourceBench> = {
  rules: { ...readingRules, ...windowRules, ...acknowledgingRules, ...endingRules, ...failingRules, ...lagRules, ...processRules },
  collectsErrors: true,
  bench: SourceBench,
};

/** The rules of sources, in the order of their results. */
export const sourceRules = listed(suite.rules);

/**
 * Runs every rule on a source plugin. Takes from a few seconds to half a minute, depending on the broker.
 * @throws what the rig throws when it is opened
 */
export function sourceConformance<Connection>(
  plugin: SourcePlugin<Connection>,
  rig: Openable<SourceRig<Connection>>,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  return runSuite(suite, plugin as SourcePlugin, rig as Openable<SourceRig>, options);
}
