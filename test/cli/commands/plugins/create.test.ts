// long
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../../support/gateway.js';
import { tempFolder } from '../../../support/start/keep.js';

const create = suite('cli/commands/plugins/create');

const modules = fileURLToPath(new URL('../../../../node_modules', import.meta.url));
const run = promisify(execFile);

/** The repository already has the packages that `npm install` would install. */
function install(folder: string): void {
  fs.symlinkSync(modules, path.join(folder, 'node_modules'));
}

async function compile(folder: string): Promise<void> {
  const tsc = path.join(modules, '@typescript', 'native', 'bin', 'tsc');
  await run(process.execPath, [tsc, '-p', folder]).catch((error: { stdout: string }) => {
    throw new Error(error.stdout);
  });
}

create(
  'a new source compiles, passes its conformance suite, and is installed, as it was written',
  async () => {
    const folder = tempFolder('author');
    const made = await runGateway(['plugins', 'create', 'source', 'mine'], { folder });
    assert.is(made.code, 0, made.stderr);
    const [, next = ''] = /^wrote \d+ files to (.*)$/s.exec(made.stdout) ?? [];
    const [api, suite] = ['plugin', 'plugin-conformance'].map((name) =>
      fs.realpathSync(path.join(modules, '@gateway', name)),
    );
    const begin = `gateway-source-mine; next:\n  cd gateway-source-mine\n  npm install --save-dev "${api}" "${suite}"\n`;
    assert.is(next.slice(0, begin.length), begin);
    const written = path.join(folder, `gateway-source-mine`);
    const manifest = JSON.parse(
      fs.readFileSync(path.join(written, 'package.json'), 'utf8'),
    ) as Record<string, Record<string, string>>;
    const declared = ['dependencies', 'peerDependencies', 'devDependencies'].map(
      (group) => manifest[group]?.['@gateway/plugin'],
    );
    assert.equal(declared, [undefined, '^0.1.0', '^0.1.0']);
    const elsewhere = path.dirname(modules);
    for (const file of fs.readdirSync(written, { recursive: true, encoding: 'utf8' })) {
      if (!fs.statSync(path.join(written, file)).isFile()) continue;
      const text = fs.readFileSync(path.join(written, file), 'utf8');
      assert.not.match(text, /__[A-Z]/);
      assert.not.ok(text.includes(elsewhere), `${file} has a path of this machine`);
    }
    install(written);
    await compile(written);
    const judged = await runGateway(['plugins', 'test', `gateway-source-mine`], {
      folder,
      withinMs: 120_000,
    });
    assert.is(judged.code, 0, `${judged.stdout}${judged.stderr}`);
    assert.match(judged.stdout, /\n[1-9]\d* passed, 0 failed, \d+ skipped\n$/);

    const linked = await runGateway(['plugins', 'install', `./gateway-source-mine`], { folder });
    assert.match(
      linked.stdout,
      new RegExp(`^installed the source plugin mine \\(gateway-source-mine 0\\.1\\.0\\)`),
      linked.stderr,
    );
  },
);

create(
  'a plugin that breaks a rule is told which, with status 1, and a rule can be checked alone',
  async () => {
    const folder = tempFolder('author');
    await runGateway(
      ['plugins', 'create', 'source', 'hasty', '--folder', 'hasty', '--package', '@acme/hasty'],
      { folder },
    );
    const written = path.join(folder, 'hasty');
    install(written);
    const file = path.join(written, 'src', 'index.ts');
    const careful = 'const outcome = await handle(message)';
    const text = fs.readFileSync(file, 'utf8');
    assert.match(text, careful);
    fs.writeFileSync(
      file,
      text.replace(careful, `await rm(join(folder, name));\n      ${careful}`),
    );
    await compile(written);
    const rule = 'acknowledges-what-settled-and-nothing-else';
    const { code, stdout } = await runGateway(
      ['plugins', 'test', 'hasty', '--rule', rule, '--json'],
      { folder, withinMs: 120_000 },
    );
    assert.is(code, 1);
    const results = JSON.parse(stdout) as {
      rule: string;
      outcome: string;
      plugin: string;
      reason: string;
    }[];
    assert.equal(
      results.map((it) => [it.plugin, it.rule, it.outcome]),
      [['hasty', rule, 'failed']],
    );
    const unknown = await runGateway(
      ['plugins', 'test', 'hasty', '--rule', 'acknowledges-what-settled-and-nothing-els'],
      { folder },
    );
    assert.is(unknown.code, 2);
    assert.match(unknown.stderr, `did you mean ${rule}?`);
  },
);

create('a kind, a name or a folder that cannot be is refused with what can', async () => {
  const folder = tempFolder('author');
  const refused = async (...args: string[]) => {
    const { code, stderr } = await runGateway(['plugins', 'create', ...args], { folder });
    assert.is(code, 2);
    return stderr;
  };
  assert.match(
    await refused('sorce', 'x'),
    '"sorce" is not a kind of plugin; did you mean source?\nfix:   give source',
  );
  assert.match(await refused('tracer', 'x'), 'there is no template of a tracer plugin');
  assert.match(
    await refused('source', 'My Broker'),
    '"My Broker" is not a valid plugin name\nfix:   use lower-case letters',
  );
  fs.writeFileSync(path.join(folder, 'something'), '');
  assert.match(
    await refused('source', 'x', '--folder', '.'),
    '. is not empty\nfix:   name another folder with --folder',
  );
  assert.match(await refused('source', 'x', '--folder', 'something'), 'something is not empty');
  assert.match(
    await refused('source', 'x', '--folder', 'something/below'),
    'something/below cannot be written: a part of the path is not a folder',
  );
  assert.match(
    await refused('source', 'x', '--package', 'My X'),
    '"My X" is not a valid package name',
  );
  assert.match(await refused('source'), 'needs <name>');
});

create(
  'a package without a rig, without a manifest, or that is not there, is refused with what to do',
  async () => {
    const folder = tempFolder('author');
    await runGateway(['plugins', 'create', 'source', 'mine', '--folder', 'mine'], { folder });
    const unbuilt = await runGateway(['plugins', 'test', 'mine'], { folder });
    assert.is(unbuilt.code, 1);
    assert.match(
      unbuilt.stderr,
      'the source plugin mine has no conformance rig: there is no ./dist/conformance.js in',
    );
    fs.writeFileSync(path.join(folder, 'package.json'), '{"name":"mine"}');
    assert.match(
      (await runGateway(['plugins', 'test', '.'], { folder })).stderr,
      'mine is not a plugin of the gateway',
    );
    assert.match(
      (await runGateway(['plugins', 'test', 'nowhere'], { folder })).stderr,
      'there is no plugin and no plugin package named nowhere',
    );
    fs.writeFileSync(path.join(folder, 'package.json'), '{');
    const broken = await runGateway(['plugins', 'test', '.'], { folder });
    assert.match(
      broken.stderr,
      `the manifest of the plugin package ${folder} is broken: its package.json: `,
    );
    const ours = await runGateway(['plugins', 'test', 'kafka'], { folder });
    assert.match(
      ours.stderr,
      'the source plugin kafka has no conformance rig: its manifest names none',
    );
  },
);

create.run();
