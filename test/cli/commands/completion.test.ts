import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../support/gateway.js';
import { runShell } from '../../support/shells.js';
import { tempFolder } from '../../support/start/keep.js';

const completion = suite('cli/commands/completion');

async function scriptFor(shell: string): Promise<string> {
  const { stdout, stderr, code } = await runGateway(['completion', shell]);
  assert.equal([code, stderr], [0, '']);
  return stdout;
}

completion(
  'without a shell, or for one that is not known, it is wrong use and lists the shells',
  async () => {
    const missing = await runGateway(['completion']);
    assert.equal(
      [missing.code, missing.stdout, missing.stderr],
      [
        2,
        '',
        'error: gateway completion needs a shell\nfix:   give one of bash, zsh, powershell\n',
      ],
    );
    const unknown = await runGateway(['completion', 'bsh']);
    assert.equal([unknown.code, unknown.stdout], [2, '']);
    assert.match(
      unknown.stderr,
      'error: the shell must be one of bash, zsh, powershell, not "bsh"; did you mean bash?',
    );
  },
);

completion('bash completes commands and flags, those of plugins included', async () => {
  const script = await scriptFor('bash');
  const offered = (...words: string[]) => {
    const quoted = words.map((word) => `'${word}'`).join(' ');
    const call = `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _gateway_autocomplete; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return [...new Set(runShell('bash', `${script}\n${call}`).trim().split('\n'))].sort();
  };
  assert.equal(offered('gateway', 'mig'), ['migrate']);
  assert.equal(offered('gateway', 'migrate', ''), ['create', 'down', 'status', 'up']);
  assert.equal(offered('gateway', 'agent', '--mo'), ['--mode']);
  assert.equal(offered('gateway', 'server', '--errtrack-d'), [
    '--errtrack-debug',
    '--errtrack-dsn',
  ]);
  const all = offered('gateway', '');
  for (const word of ['s', 'serve', 'worker']) assert.not.ok(all.includes(word), word);
});

completion('zsh completes them when the script is in a folder of fpath', async () => {
  const folder = tempFolder('zsh');
  writeFileSync(join(folder, '_gateway'), await scriptFor('zsh'));
  const typed = Object.entries({
    'gateway mig': 'gateway migrate',
    'gateway migrate u': 'gateway migrate up',
    'gateway agent --mo': 'gateway agent --mode',
    'gateway agent --port 1 --errtrack-ds': 'gateway agent --port 1 --errtrack-dsn',
  });
  // A missing completion is reported as a timeout of the shell.
  const script = [
    'zmodload zsh/zpty',
    `zpty it 'zsh -f -i'`,
    `zpty -w it 'PROMPT=; autoload -Uz compinit; fpath=(${folder} $fpath); compinit -u -D; print re""ady'`,
    `zpty -r it shown '*ready*'`,
    ...typed.flatMap(([begun, whole]) => [
      `zpty -w -n it $'\\C-u${begun}\\t'`,
      `zpty -r it shown $'*${whole}*' && print -r -- 'completed ${begun}'`,
    ]),
    'zpty -d it',
  ].join('\n');
  const said = runShell('zsh', script);
  for (const [begun] of typed) assert.match(said, `completed ${begun}`);
});

completion('PowerShell gets a completer with commands, flags and summaries', async () => {
  const script = await scriptFor('powershell');
  assert.match(
    script,
    'Register-ArgumentCompleter -Native -CommandName gateway -ScriptBlock $scriptblock',
  );
  for (const word of ['"migrate" = @{', '"quarantine" = @{', '"errtrack-dsn" = @{'])
    assert.match(script, word);
});

completion.run();
