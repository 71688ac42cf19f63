import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PluginError, whenAborted } from '@gateway/plugin';
import { sourceConformance, sourceRules } from '@gateway/plugin-conformance';
import { brokenSources, leaks } from './broken-sources.js';
import { collect, namesWhatIsBroken } from './judged.js';
import { toyRig, toySource } from './toy-source.js';

const judge = suite('conformance/source');

const quick = { withinMs: 1_000, quietMs: 150, atOnce: 50 };
/** Rules about the whole process, which cannot be judged concurrently. */
const alone = ['rests-when-nothing-comes', 'closes-what-it-opened', 'lets-nothing-escape'];
const beside = sourceRules.map(({ name }) => name).filter((name) => !alone.includes(name));

judge('a source that keeps every rule passes all of them', async () => {
  const results = [...(await collect(sourceConformance(toySource(), toyRig, quick))).values()];
  assert.equal(
    results.filter(({ outcome }) => outcome !== 'passed'),
    [],
  );
  assert.is(results.length, sourceRules.length);
});

judge('a secret in a property of a cause is found', async () => {
  const cause = Object.assign(new Error('NOAUTH'), {
    command: { args: ['user', 'a-wrong-password'] },
  });
  const refuse = () =>
    Promise.reject(new PluginError('The toy broker refused.', { fix: 'Check password.', cause }));
  const results = await collect(
    sourceConformance(toySource({ check: refuse, failed: refuse }), toyRig, {
      ...quick,
      rules: ['refuses-wrong-credentials'],
    }),
  );
  const result = results.get('refuses-wrong-credentials');
  assert.is(result?.outcome, 'failed');
  assert.match(
    result && 'reason' in result ? result.reason : '',
    /^the error of `check` contains a secret/,
  );
});

judge('a hook of the rig that fails is named, and the plugin is not blamed', async () => {
  const rules = ['check-accepts-what-can-be-read', 'survives-an-outage', 'lets-nothing-escape'];
  const rig = toyRig();
  const broken: typeof rig = {
    ...rig,
    open: async (wanted) => ({
      ...(await rig.open(wanted)),
      unacknowledged: () => Promise.reject(new Error('no figures')),
    }),
    openBreakable: () => {
      throw new Error('no broker');
    },
  };
  const results = await collect(sourceConformance(toySource(), broken, { ...quick, rules }));
  const reasons = [...results.values()].map((result) =>
    'reason' in result ? result.reason.split('\n')[0] : result.outcome,
  );
  const innocent = 'which tells nothing about the plugin';
  assert.equal(reasons, [
    `the rig failed in \`unacknowledged\`, ${innocent}: Error: no figures`,
    `the rig failed in \`openBreakable\`, ${innocent}: Error: no broker`,
    'passed',
  ]);
  const unopened = sourceConformance(toySource(), () => Promise.reject(new Error('no Docker')), {
    ...quick,
    rules,
  });
  const error = await collect(unopened).then(
    () => undefined,
    (it: unknown) => it,
  );
  assert.instance(error, PluginError);
  assert.match(
    (error as PluginError).message,
    /^The conformance rig failed to open: Error: no Docker/,
  );
});

judge('a broker that a rule took away is back when the rule fails', async () => {
  let isAway = false;
  const rig = toyRig();
  const openBreakable = async () => {
    const place = await rig.openBreakable!();
    const cut = () => ((isAway = true), place.cut());
    const heal = () => ((isAway = false), place.heal());
    return { ...place, cut, heal };
  };
  const plugin = toySource({
    failed: (error, _connection, context) => {
      if (error instanceof PluginError) throw error;
      context.report('connecting');
      return whenAborted(context.signal);
    },
  });
  const rules = ['survives-an-outage'];
  const results = await collect(
    sourceConformance(plugin, { ...rig, openBreakable }, { withinMs: 50, quietMs: 50, rules }),
  );
  assert.is(results.get(rules[0]!)?.outcome, 'failed');
  assert.not.ok(isAway);
});

namesWhatIsBroken(
  judge,
  sourceRules,
  brokenSources,
  ({ plugin }, rule) =>
    sourceConformance(plugin(), toyRig, { ...quick, rules: alone.includes(rule) ? alone : beside }),
  (rule) => alone.includes(rule),
);

judge.after(() => leaks.forEach(clearInterval));

judge.run();
