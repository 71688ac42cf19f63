import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../support/gateway.js';
import { runShell } from '../../support/shells.js';

const bash = suite('cli/completion/bash');

let script = '';
bash.before(async () => {
  const { stdout, stderr, code } = await runGateway([
    'completion',
    'bash',
    '--db-port',
    '1',
    '--kv-port',
    '1',
  ]);
  assert.equal([code, stderr], [0, '']);
  script = stdout;
});

/** The completions of the last word in a bash that has sourced the script. */
function offered(...words: string[]): string[] {
  const quoted = words.map((word) => `'${word}'`).join(' ');
  const call = `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; COMPREPLY=(); $function; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const named = `[[ "$(complete -p gateway)" =~ -F\\ ([^ ]+)\\ gateway ]]; function="\${BASH_REMATCH[1]}"`;
  const lines = runShell('bash', `${script}\n${named}; ${call}`).split('\n');
  return [...new Set(lines.map((line) => line.trim()).filter(Boolean))].sort();
}

bash('commands, topics and the commands of a topic are completed', () => {
  assert.equal(offered('gateway', 'mig'), ['migrate']);
  assert.equal(offered('gateway', 'migrate', ''), ['create', 'down', 'status', 'up']);
  assert.equal(offered('gateway', 'config', ''), ['check', 'schema']);
  assert.equal(offered('gateway', 'utils', 'quarantine', 'd'), ['discard']);
  assert.equal(offered('gateway', 'help', 'migrate', 'u'), ['up']);
  const all = offered('gateway', '');
  for (const word of ['agent', 'help', 'utils', 'version']) assert.ok(all.includes(word), word);
  for (const word of ['s', 'serve', 'worker']) assert.not.ok(all.includes(word), word);
});

bash('flags are completed, those of plugins included, also after other flags and arguments', () => {
  assert.equal(offered('gateway', 'agent', '--mo'), ['--mode']);
  assert.equal(offered('gateway', 'agent', '--port', '1', '--mo'), ['--mode']);
  assert.equal(offered('gateway', 'agent', '--port', '=', '1', '--no-such', '--mo'), ['--mode']);
  assert.equal(offered('gateway', 'utils', 'quarantine', 'show', 'qrn_1', '--js'), ['--json']);
  assert.equal(offered('gateway', 'server', '--errtrack-d'), [
    '--errtrack-debug',
    '--errtrack-dsn',
  ]);
  assert.equal(offered('gateway', 'server', '--mo'), []);
});

bash('values are completed where they are known, and files where they are not', () => {
  assert.equal(offered('gateway', 'agent', '--mode', ''), ['default', 'events', 'retry']);
  assert.equal(offered('gateway', 'agent', '--mode', '=', 'ev'), ['events']);
  assert.equal(offered('gateway', 'agent', '--mode', '='), ['default', 'events', 'retry']);
  assert.equal(offered('gateway', 'server', '--kv-type', 'in'), ['in-memory']);
  assert.equal(offered('gateway', 'server', '--enable-feature-flag', ''), ['pullmetrics']);
  assert.equal(
    offered('gateway', 'server', '--config', ''),
    [],
    'nothing of ours, so that -o default completes a file',
  );
  assert.match(runShell('bash', `${script}\ncomplete -p gateway`), '-o default');
});

bash.run();
