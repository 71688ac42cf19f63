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
 * Declares one test per rule: the suite must report exactly that rule for the plugin that breaks
 * it.
 * @param broken by rule; `also` are rules that it inevitably breaks too
 * @param alone rules judged sequentially, after the others
 */
export function namesWhatIsBroken<
  Broken extends { readonly also?: Readonly<Record<string, string>> },
>(
  suite: Test,
  rules: readonly { readonly name: string }[],
  broken: Readonly<Record<string, Broken>>,
  judge: (broken: Broken, rule: string) => AsyncIterable<RuleResult>,
  alone: (rule: string) => boolean,
): void {
  suite('there is a broken plugin for each rule, and no other', () => {
    assert.equal(Object.keys(broken).sort(), rules.map(({ name }) => name).sort());
  });
  const together = once(() => {
    const waiting = Object.entries(broken).filter(([rule]) => !alone(rule));
    const found = new Map<string, Promise<RuleResult[]>>();
    const lanes = Array.from({ length: TOGETHER }, () => Promise.resolve());
    waiting.forEach(([rule, one], at) => {
      const judged = (lanes[at % TOGETHER] ?? Promise.resolve()).then(async () => [
        ...(await collect(judge(one, rule))).values(),
      ]);
      found.set(rule, judged);
      lanes[at % TOGETHER] = judged.then(
        () => undefined,
        () => undefined,
      );
    });
    return found;
  });
  for (const [rule, one] of Object.entries(broken)) {
    suite(`names ${rule} when that is what is broken`, async () => {
      const results = (await together().get(rule)) ?? [
        ...(await collect(judge(one, rule))).values(),
      ];
      const failed = results.flatMap((result) =>
        result.outcome === 'failed' ? [`${result.rule}: ${result.reason}`] : [],
      );
      const expected = [rule, ...Object.keys(one.also ?? {})].sort();
      assert.equal(failed.map((line) => line.split(':')[0]).sort(), expected, failed.join('\n'));
    });
  }
}

function once<Result>(make: () => Result): () => Result {
  let made: { readonly result: Result } | undefined;
  return () => (made ??= { result: make() }).result;
}
