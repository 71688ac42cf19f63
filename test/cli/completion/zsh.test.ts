import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../support/gateway.js';
import { runShell } from '../../support/shells.js';
import { tempFolder } from '../../support/start/keep.js';

const zsh = suite('cli/completion/zsh');

const file = join(tempFolder('zsh'), '_gateway');
zsh.before(async () => {
  const { stdout, stderr, code } = await runGateway(['completion', 'zsh']);
  assert.equal([code, stderr], [0, '']);
  writeFileSync(file, stdout);
});

/**
 * Types the prefixes, each followed by a tab, into an interactive zsh on a pseudo-terminal, and
 * waits for the completed lines. A missing completion is reported as a timeout of the shell.
 */
function completes(load: string, lines: Readonly<Record<string, string>>): void {
  const typed = Object.entries(lines).flatMap(([begun, whole]) => [
    `zpty -w -n it $'\\C-u${begun}\\t'`,
    `zpty -r it shown $'*${whole}*' && print -r -- 'completed ${begun}'`,
  ]);
  const script = [
    'zmodload zsh/zpty',
    `zpty it 'zsh -f -i'`,
    `zpty -w it 'PROMPT=; autoload -Uz compinit; ${load}; print re""ady'`,
    `zpty -r it shown '*ready*'`,
    ...typed,
    'zpty -d it',
  ].join('\n');
  const said = runShell('zsh', script);
  for (const begun of Object.keys(lines)) assert.match(said, `completed ${begun}`);
}

const lines = {
  'gateway mig': 'gateway migrate',
  'gateway migrate u': 'gateway migrate up',
  'gateway utils quarantine d': 'gateway utils quarantine discard',
  'gateway agent --mo': 'gateway agent --mode',
  'gateway agent --mode re': 'gateway agent --mode retry',
  'gateway agent --port 1 --errtrack-ds': 'gateway agent --port 1 --errtrack-dsn',
};

zsh('completes commands, flags and values when the script is sourced', () =>
  completes(`compinit -u -D; source ${file}`, lines),
);

zsh('completes them when the script stands in a folder of fpath', () =>
  completes(`fpath=(${join(file, '..')} $fpath); compinit -u -D`, lines),
);

zsh.run();
