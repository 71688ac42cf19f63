import type { SourcePlugin } from '../source.js';
import { judgeWatched, listed, type Rule } from './judge.js';
import type { ConformanceOptions, Openable, RuleResult } from './result.js';
import type { SourceRig } from './source-rig.js';
import { acknowledgingRules } from './source/acknowledging.js';
import { endingRules } from './source/ending.js';
import { lagRules } from './source/lag.js';
import { processRules } from './source/process.js';
import { readingRules } from './source/reading.js';
import { refusingRules } from './source/refusing.js';
import { onStage, type SourceBench } from './source/stage.js';
import { windowRules } from './source/window.js';

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
