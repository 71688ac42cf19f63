import { ChildProcess } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Sandbox } from '@gateway/sandbox';
import { childCommands } from '#sandbox/parent/confinement';
import { DEFAULT_LIMITS } from '#sandbox/protocol/protocol';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { within } from '../../support/until.js';

const test = suite('sandbox/parent/confinement');

/** The internal method through which Node starts every process. */
type Spawn = (
  this: { _handle: { spawn(options: Start | string, ...rest: unknown[]): number } },
  options: Start,
) => unknown;

interface Start {
  file: string;
  args: string[];
}

test('the strictest way to start a process comes first, and one that needs nothing but Node last', async () => {
  const commands = await childCommands(DEFAULT_LIMITS);
  const lengths = commands.map(({ args }) => args.length);
  assert.equal(lengths[0], Math.max(...lengths));
  assert.is(commands.at(-1)?.file, process.execPath);
});

test('every way limits the heap, and forbids other files, processes and threads', async () => {
  for (const { args } of await childCommands({ ...DEFAULT_LIMITS, memoryMb: 77 })) {
    assert.ok(args.includes('--max-old-space-size=77'));
    assert.ok(args.some((arg) => /^--(experimental-)?permission$/.test(arg)));
    assert.equal(
      args.filter((arg) => arg.startsWith('--allow-') && !arg.startsWith('--allow-fs-read=/')),
      [],
    );
    assert.not.ok(args.some((arg) => arg === '--allow-fs-read=/'));
  }
});

test('tools that are there but do not work are done without', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-test-'));
  const path = process.env['PATH'];
  const sandbox = new Sandbox({ processes: 2 });
  try {
    for (const name of ['setpriv', 'prlimit']) {
      await writeFile(join(folder, name), '#!/bin/sh\necho "unknown option" >&2\nexit 1\n');
      await chmod(join(folder, name), 0o755);
    }
    process.env['PATH'] = `${folder}${delimiter}${path}`;
    const functions = ['a', 'b'].map((name) => ({
      key: name,
      text: `function transform(payload) { return { ${name}: payload }; }`,
    }));
    const results = await within(
      Promise.all(functions.map((fn) => sandbox.run(fn, ['1']))),
      30_000,
      'answers',
    );
    assert.equal(
      results.flat().map((result) => result.kind === 'object' && result.json),
      ['{"a":1}', '{"b":1}'],
    );
  } finally {
    process.env['PATH'] = path;
    await sandbox.close();
    await rm(folder, { recursive: true });
  }
});

test('a process that cannot be made at the moment says nothing against the way it was started', async () => {
  const { prototype } = ChildProcess as unknown as { prototype: { spawn: Spawn } };
  const { spawn } = prototype;
  const started: string[] = [];
  prototype.spawn = function (options) {
    started.push(options.args.join(' '));
    const handle = this._handle;
    const { spawn: make } = handle;
    if (started.length <= 2)
      handle.spawn = (wanted, ...rest) => {
        // Node 24 passes the file as the first of many arguments.
        make.call(
          handle,
          typeof wanted === 'string' ? '/nowhere' : { ...wanted, file: '/nowhere' },
          ...rest,
        );
        // The kernel's error for too many processes, see fork(2).
        return -constants.errno.EAGAIN;
      };
    return spawn.call(this, options);
  };
  const sandbox = new Sandbox({ processes: 1 });
  try {
    const [result] = await within(
      sandbox.run({ key: 'a', text: 'function transform() { return {}; }' }, ['1']),
      30_000,
      'an answer',
    );
    assert.is(result?.kind, 'object');
  } finally {
    prototype.spawn = spawn;
    await sandbox.close();
  }
  const [strictest] = await childCommands(DEFAULT_LIMITS);
  const way = [strictest?.file, ...(strictest?.args ?? [])].join(' ');
  // Newer versions of Node need the wider limit, which is tried after this one has failed by itself.
  assert.equal(started.slice(0, 3), [way, way, way]);
});

test.run();
