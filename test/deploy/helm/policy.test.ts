// deadline: 900 s, long
import { spawnSync } from 'node:child_process';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { own } from '../../support/services.js';
import { chart, helmOf, rendered, valueFiles } from './charts.js';

const policy = suite('deploy/helm/policy');

/**
 * Checks that the chart leaves out on purpose: a limit of the processor time throttles deliveries,
 * tags of releases do not move, topology spread replaces anti-affinity, network policies are off
 * by default, and one retry agent can be enough.
 */
const leftOut = [
  'container-image-pull-policy',
  'deployment-has-host-podantiaffinity',
  'pod-networkpolicy',
  'deployment-replicas',
];

policy('kube-score has nothing else to criticise', async () => {
  const helm = await helmOf('4.3.0');
  const score = await own.goProgram('github.com/zegl/kube-score/cmd/kube-score@v1.20.0');
  for (const [name, file] of Object.entries(valueFiles)) {
    // OpenShift adds the user.
    const more = name === 'openshift' ? ['container-security-context-user-group-id'] : [];
    const options = [...leftOut, ...more].map((test) => `--ignore-test=${test}`);
    const { status, stdout } = spawnSync(
      score,
      ['score', '--ignore-container-cpu-limit', '--output-format=ci', ...options, '-'],
      { input: await rendered(helm, chart, `--values=${file}`), encoding: 'utf8' },
    );
    const found = stdout.split('\n').filter((line) => /^\[(WARNING|CRITICAL)\]/.test(line));
    assert.equal(found, [], file);
    assert.is(status, 0, stdout);
  }
});

policy('Helm 3 renders what Helm 4 renders', async () => {
  const [three, four] = [await helmOf('3.21.4'), await helmOf('4.3.0')];
  for (const file of Object.values(valueFiles)) {
    // They differ in order and blank lines.
    const [older, newer] = await Promise.all(
      [three, four].map(async (helm) =>
        (await rendered(helm, chart, `--values=${file}`))
          .replace(/\n+/g, '\n')
          .split(/^---\n/m)
          .map((text) => text.trim())
          .sort(),
      ),
    );
    assert.equal(older, newer, file);
  }
});

policy.run();
