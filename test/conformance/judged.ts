import type { Test } from 'uvu';
import * as assert from 'uvu/assert';
import type { RuleResult } from '@gateway/plugin-conformance';

/**
 * Declares one test per rule: the suite judges the plugin once, and each test checks its result.
 * @param judge starts the judging; called by the first test
 * @param skipped rules that this back end makes impossible to judge: exactly these are skipped
 */
export function judged(
  suite: Test,
  rules: readonly { readonly name: string; readonly sentence: string }[],
  judge: () => AsyncIterable<RuleResult>,
  skipped: readonly string[] = [],
): void {
  let results: Promise<Map<string, RuleResult>> | undefined;
  for (const { name, sentence } of rules) {
    suite(`${name}: ${sentence}`, async () => {
      const result = (await (results ??= collect(judge()))).get(name);
      if (skipped.includes(name))
        assert.is(result?.outcome, 'skipped', 'it can be judged: take it off the list');
      else
        assert.is(
          result?.outcome,
          'passed',
          result && 'reason' in result ? result.reason : 'there is no result',
        );
    });
  }
}

export async function collect(
  results: AsyncIterable<RuleResult>,
): Promise<Map<string, RuleResult>> {
  const collected = new Map<string, RuleResult>();
  for await (const result of results) {
    collected.set(result.rule, result);
    if (process.env['CONFORMANCE_TRACE'])
      console.log(
        result.outcome,
        result.rule,
        result.durationMs,
        'reason' in result ? result.reason : '',
      );
  }
  return collected;
}

/**
 * The number of plugins judged concurrently. Each adds a listener to the process, and Node warns
 * above ten.
 */
const TOGETHER = 9;

/**
 * Declares one test per broken plugin: the suite must report exactly the rule that it breaks.
 * @param broken by rule, then by fault
 * @param alone rules judged sequentially, after the others
 */
export function namesWhatIsBroken<Broken>(
  suite: Test,
  rules: readonly { readonly name: string }[],
  broken: Readonly<Record<string, Readonly<Record<string, Broken>>>>,
  judge: (broken: Broken, rule: string) => AsyncIterable<RuleResult>,
  alone: (rule: string) => boolean,
): void {
  suite('there is a broken plugin for each rule, and no other', () => {
    assert.equal(Object.keys(broken).sort(), rules.map(({ name }) => name).sort());
  });
  const all = Object.entries(broken).flatMap(([rule, faults]) =>
    Object.entries(faults).map(([fault, one]) => ({ rule, fault, one })),
  );
  const together = once(() => {
    const found = new Map<string, Promise<RuleResult[]>>();
    const lanes = Array.from({ length: TOGETHER }, () => Promise.resolve());
    all
      .filter(({ rule }) => !alone(rule))
      .forEach(({ rule, fault, one }, at) => {
        const judged = (lanes[at % TOGETHER] ?? Promise.resolve()).then(async () => [
          ...(await collect(judge(one, rule))).values(),
        ]);
        found.set(fault, judged);
        lanes[at % TOGETHER] = judged.then(
          () => undefined,
          () => undefined,
        );
      });
    return found;
  });
  for (const { rule, fault, one } of all) {
    suite(`names ${rule} of a plugin that ${fault}`, async () => {
      const results = (await together().get(fault)) ?? [
        ...(await collect(judge(one, rule))).values(),
      ];
      const failed = results.flatMap((result) =>
        result.outcome === 'failed' ? [`${result.rule}: ${result.reason}`] : [],
      );
      assert.equal(
        failed.map((line) => line.split(':')[0]),
        [rule],
        failed.join('\n'),
      );
    });
  }
}

function once<Result>(make: () => Result): () => Result {
  let made: { readonly result: Result } | undefined;
  return () => (made ??= { result: make() }).result;
}
