import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { useInstallation } from '#cli/app/installation';
import { aliases, namedCommand, summaries, wantedCommands } from '#cli/app/command-index';
import { commands, loadCommands } from '#cli/app/oclif';
import { root } from '../../meta/house.js';

const named = suite('cli/app/command-index');

const all = Object.keys(summaries);

named('the longest command or topic at the beginning is what a line names', () => {
  assert.is(namedCommand(['migrate', 'up', '--db-host', 'a']).id, 'migrate:up');
  assert.is(namedCommand(['migrate', 'upp']).id, 'migrate');
  assert.is(namedCommand(['utils', 'quarantine', 'show', 'list']).id, 'utils:quarantine:show');
  assert.is(namedCommand(['s', '--port', '1']).id, 'server');
  assert.is(namedCommand(['--db-host', 'agent']).id, '');
  assert.is(namedCommand(['constructor']).id, '');
  assert.equal(namedCommand(['utils', 'quarantine', '--json', 'x']), {
    id: 'utils:quarantine',
    rest: ['--json', 'x'],
  });
});

named('only what a line may be about is wanted, and everything when no word comes first', () => {
  assert.equal(wantedCommands(['agent', '--help']), ['agent']);
  assert.equal(wantedCommands(['serve']), ['server']);
  assert.equal(wantedCommands(['config', '-h']), ['config', 'config:check', 'config:schema']);
  assert.equal(wantedCommands(['help', 'migrate', 'up']), ['help', 'migrate:up']);
  assert.equal(wantedCommands(['help', '-h', 'version']), ['help', 'version']);
  assert.equal(wantedCommands(['help']), ['help']);
  assert.equal(wantedCommands(['agnet']), []);
  for (const argv of [[], ['-h', 'agent'], ['completion', 'bash']])
    assert.equal(wantedCommands(argv), all, argv.join(' '));
});

named('the aliases are those that the commands carry', async () => {
  useInstallation({ root, file: undefined });
  await loadCommands(wantedCommands([]));
  assert.equal(Object.keys(commands), all);
  const carried = Object.entries(commands).flatMap(([id, { aliases: shown, hiddenAliases }]) =>
    [...shown, ...hiddenAliases].map((alias) => [alias, id]),
  );
  assert.equal(Object.fromEntries(carried), aliases);
});

named.run();
