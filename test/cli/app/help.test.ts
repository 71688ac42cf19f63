import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import GatewayHelp from '#cli/app/gateway-help';
import { useInstallation } from '#cli/app/installation';
import { loadOclif } from '#cli/app/oclif';
import { namedCommand, rootHelp, summaries, topics } from '#cli/app/command-index';
import { root } from '../../meta/house.js';
import { runGateway } from '../../support/gateway.js';

const help = suite('cli/app/help');

const folder = path.join(root, 'test/fixtures/help');

useInstallation({ root, file: undefined });
const config = await loadOclif();
// Copies: help modifies the ids of oclif's commands.
const commands = config.commands
  .filter(({ id }) => Object.hasOwn(summaries, id))
  .map((it) => ({ ...it }));

class PrintedHelp extends GatewayHelp {
  text = '';
  override log(...lines: string[]): void {
    this.text += `${lines.join(' ')}\n`;
  }
}

async function helpOf(command: (typeof commands)[number]): Promise<string> {
  const printed = new PrintedHelp(config, { maxWidth: 80, stripAnsi: true });
  await printed.showCommandHelp({ ...command });
  return printed.text;
}

/** Printed help by file name: of the program, each topic and each command. */
const texts = new Map<string, string>([
  ['gateway', rootHelp(80).replace(/(?<=VERSION\n {2}).*/, '<version>')],
]);
for (const topic of Object.keys(topics))
  texts.set(topic.replaceAll(':', '-'), (await runGateway(topic.split(':'))).stdout);
const wholes = new Map<string, string>();
for (const command of commands) wholes.set(command.id.replaceAll(':', '-'), await helpOf(command));

/** The global flags are in one file, so that a new flag changes only that file. */
const shared = /^GLOBAL FLAGS\n.*/ms.exec(wholes.get('bootstrap') ?? '')?.[0] ?? '';
texts.set('global-flags', shared);
for (const [name, text] of wholes)
  texts.set(name, text.replace(shared, 'GLOBAL FLAGS\n  as in global-flags.txt\n'));

texts.set('flags', (await runGateway(['help', 'flags'])).stdout);

if (process.env['UPDATE_SNAPSHOTS']) {
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  for (const [name, text] of texts) fs.writeFileSync(path.join(folder, `${name}.txt`), text);
}

for (const [name, text] of texts) {
  help(`the help of ${name.replaceAll('-', ' ')} is what its file says`, () => {
    const file = path.join(folder, `${name}.txt`);
    assert.ok(fs.existsSync(file), `${file} is missing: UPDATE_SNAPSHOTS=1 writes it`);
    assert.fixture(
      text,
      fs.readFileSync(file, 'utf8'),
      `the help of ${name} has changed: look at it, then UPDATE_SNAPSHOTS=1 writes its file`,
    );
  });
}

help(
  'the help of each command fits a screen: its own part without the global flags, and both',
  () => {
    for (const [name, text] of wholes) {
      const lines = text.trimEnd().split('\n');
      const own = text.split('\nGLOBAL FLAGS\n', 1)[0]!.trimEnd().split('\n');
      assert.ok(lines.length <= 50, `${name}: ${lines.length} lines`);
      assert.ok(own.length <= 36, `${name}: ${own.length} lines of its own`);
      for (const line of lines.filter((it) => !it.includes('gateway ')))
        assert.ok(line.length <= 80, `${name}: ${line}`);
    }
  },
);

help('help flags explains every flag that sets a setting, with its variable', async () => {
  const text = texts.get('flags') ?? '';
  for (const command of commands)
    for (const { name, summary = '', hidden } of Object.values(command.flags)) {
      const [, variable] = /env: (\w+)\]$/.exec(summary) ?? [];
      if (hidden || variable === undefined) continue;
      assert.match(text, new RegExp(`--(\\[no-\\])?${name}\\b`), `${command.id}: ${name}`);
    }
});

help('there is no file for a command that is gone', () => {
  assert.equal(
    fs.readdirSync(folder).sort(),
    [...texts.keys()].map((name) => `${name}.txt`).sort(),
  );
});

help('-h, --help and help print that', async () => {
  for (const words of [['migrate', 'up'], ['config'], ['utils', 'quarantine', 'list']]) {
    const text = wholes.get(words.join('-'));
    for (const args of [
      [...words, '-h'],
      [...words, '--help'],
      ['help', ...words],
    ]) {
      const { stdout, stderr, code } = await runGateway(args);
      assert.equal([code, stderr], [0, ''], args.join(' '));
      assert.is(stdout, text, args.join(' '));
    }
  }
});

for (const command of commands) {
  const { id, summary, description = '', examples, flags } = command;
  const name = id.replaceAll(':', ' ');

  help(
    `gateway ${name} tells what it is for, in its summary, its description and every flag`,
    () => {
      assert.is(summary, summaries[id as keyof typeof summaries]);
      assert.ok(description !== '', `${name} has no description`);
      for (const flag of Object.values(flags))
        assert.ok(flag.summary, `--${flag.name} of ${name} has no summary`);
    },
  );

  help(`gateway ${name} has examples, and they parse`, async () => {
    const lines = (typeof examples === 'string' ? [examples] : (examples ?? [])).map((it) =>
      typeof it === 'string' ? it : it.command,
    );
    assert.ok(lines.length > 0, `${name} has no example`);
    for (const line of lines) {
      const [, typed = ''] = /\bgateway ((?:(?! < )[^|>)])*)/.exec(line) ?? [];
      const argv = [...typed.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
        ([, double, single, bare]) => double ?? single ?? bare ?? '',
      );
      const words = id.split(':').length;
      if (argv[0] !== '--version')
        assert.is(namedCommand(argv).id, id, `${line} is of another command`);
      else continue;
      const loaded = await command.load();
      const probe = new (loaded as unknown as Probe)(argv.slice(words), config);
      if (loaded.strict) await probe.parse(loaded, argv.slice(words));
    }
  });
}

help.run();

type Probe = new (
  argv: readonly string[],
  config: unknown,
) => { parse(command: unknown, argv: readonly string[]): Promise<unknown> };
