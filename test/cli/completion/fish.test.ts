import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../support/gateway.js';
import { runShell } from '../../support/shells.js';

const fish = suite('cli/completion/fish');

let script = '';
fish.before(async () => {
  const { stdout, stderr, code } = await runGateway(['completion', 'fish']);
  assert.equal([code, stderr], [0, '']);
  script = stdout;
});

/** The completions of this line in a fish that has sourced the script, without descriptions. */
function offered(line: string): string[] {
  const lines = runShell('fish', `${script}\ncomplete -C '${line}'`).split('\n');
  return lines
    .filter(Boolean)
    .map((it) => it.split('\t')[0]!)
    .sort();
}

fish('commands, topics and the commands of a topic are completed, with their summaries', () => {
  assert.match(
    runShell('fish', `${script}\ncomplete -C 'gateway mig'`),
    'migrate\tDatabase migrations.',
  );
  assert.equal(offered('gateway migrate '), ['create', 'down', 'status', 'up']);
  assert.equal(offered('gateway config '), ['check', 'schema']);
  assert.equal(offered('gateway utils quarantine d'), ['discard']);
  assert.equal(offered('gateway help migrate u'), ['up']);
});

fish('flags are completed, those of plugins included, also after other flags and arguments', () => {
  assert.equal(offered('gateway agent --mo'), ['--mode']);
  assert.equal(offered('gateway agent --port 1 --mo'), ['--mode']);
  assert.equal(offered('gateway utils quarantine show qrn_1 --js'), ['--json']);
  assert.equal(offered('gateway server --errtrack-d'), ['--errtrack-debug', '--errtrack-dsn']);
  assert.equal(offered('gateway server --mo'), []);
});

fish('values are completed where they are known', () => {
  assert.equal(offered('gateway agent --mode '), ['default', 'events', 'retry']);
  assert.equal(offered('gateway agent --mode=ev'), ['--mode=events']);
  assert.equal(offered('gateway server --kv-type in'), ['in-memory']);
});

fish.run();
