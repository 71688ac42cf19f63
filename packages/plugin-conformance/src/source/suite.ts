import type { SourcePlugin } from '@gateway/plugin';
import { judgeWatched, listed, type Rule } from '../run/judge.js';
import type { ConformanceOptions, Openable, RuleResult } from '../run/result.js';
import type { SourceRig } from './rig.js';
import { acknowledgingRules } from './acknowledging.js';
import { endingRules } from './ending.js';
import { lagRules } from './lag.js';
import { processRules } from './process.js';
import { readingRules } from './reading.js';
import { refusingRules } from './failing.js';
import { onStage, type SourceBench } from './bench.js';
import { windowRules } from './window.js';

const rules: readonly Rule<SourceBench>[] = [
  ...readingRules,
  ...windowRules,
  ...acknowledgingRules,
  ...endingRules,
  ...refusingRules,
  ...lagRules,
  ...processRules,
].map(onStage);

/** The rules of sources, in the order of their results. */
export const sourceRules = listed(rules);

/**
 * Judges a source plugin by every rule, one result each. Takes from a few seconds to half a minute, as the broker is.
 * @throws what the rig throws when it is opened
 */
export function sourceConformance<Connection>(
  plugin: SourcePlugin<Connection>,
  rig: Openable<SourceRig<Connection>>,
  options: ConformanceOptions = {},
): AsyncIterable<RuleResult> {
  return judgeWatched(rules, plugin as SourcePlugin, rig as Openable<SourceRig>, options);
}
