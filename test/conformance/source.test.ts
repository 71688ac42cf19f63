import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PluginError } from '@gateway/plugin';
import { sourceConformance, sourceRules } from '@gateway/plugin-conformance';
import { brokenSources, leaks } from './broken-sources.js';
import { collect, namesWhatIsBroken } from './judged.js';
import { toyRig, toySource } from './toy-source.js';

const judge = suite('conformance/source');

const quick = { withinMs: 1_000, quietMs: 150, atOnce: 50 };
/** They look at the whole process, so they cannot be judged beside others. */
const alone = ['rests-when-nothing-comes', 'closes-what-it-opened', 'check-closes-what-it-opened', 'lets-nothing-escape'];
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
  const cause = Object.assign(new Error('NOAUTH'), { command: { args: ['user', 'a-wrong-password'] } });
  const refuse = () => Promise.reject(new PluginError('The toy broker refused.', { fix: 'Check password.', cause }));
  const results = await collect(
    sourceConformance(toySource({ check: refuse, failed: refuse }), toyRig, { ...quick, rules: ['keeps-secrets-to-itself'] }),
  );
  const result = results.get('keeps-secrets-to-itself');
  assert.is(result?.outcome, 'failed');
  assert.match(result && 'reason' in result ? result.reason : '', /^the error of `check` contains a secret/);
});

namesWhatIsBroken(
  judge,
  sourceRules,
  brokenSources,
  ({ plugin }, rule) => sourceConformance(plugin(), toyRig, { ...quick, rules: alone.includes(rule) ? alone : beside }),
  (rule) => alone.includes(rule),
);

judge.after(() => leaks.forEach(clearInterval));

judge.run();
