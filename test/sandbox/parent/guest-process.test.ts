import { execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { Sandbox } from '@gateway/sandbox';
import { GuestProcess, type End } from '#sandbox/parent/guest-process';
import { DEFAULT_LIMITS, encodeReply } from '#sandbox/protocol/protocol';
import { STARTED } from '#sandbox/protocol/progress';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { processes } from '../../support/processes.js';
import { until, within } from '../../support/until.js';
import { alive, guestProcesses, stateOf } from '../processes.js';

const test = suite('sandbox/parent/guest-process');

const deaf = { onStarted: () => undefined, onReply: () => undefined };

function childPids(): number[] {
  return [...processes()].flatMap(([pid, { parent }]) => (parent === process.pid ? [pid] : []));
}

/** Starts another program as child, sends it a chunk, and waits for its end. */
async function endOf(code: string): Promise<End> {
  return within(
    new Promise<End>((resolve) => {
      const command = { file: process.execPath, args: ['-e', code] };
      const guest = new GuestProcess(command, DEFAULT_LIMITS, { ...deaf, onEnd: resolve });
      guest.send({ id: 1, key: '', text: '', payloads: ['1'] });
    }),
    30_000,
    'the end of a process',
  );
}

const READY = `require('fs').writeSync(3, Buffer.from('${encodeReply({ chunk: STARTED, first: 0, answers: [] }).toString('base64')}', 'base64'));`;
const CELL = `${READY} const at = (chunk, call) => { const cell = new Uint32Array([chunk, call]); require("fs").writeSync(4, new Uint8Array(cell.buffer), 0, 8, 0); };`;

test('a process that dies before it takes a call is told apart from one that dies during a call', async () => {
  assert.is((await endOf('process.exit(3)')).cause, 'unstarted');
  const during = await endOf(`${CELL} at(1, 1); process.exit(3)`);
  assert.equal([during.cause, during.call], ['lost', 0]);
  const between = await endOf(`${CELL} at(1, 0); process.exit(3)`);
  assert.equal([between.cause, between.call], ['lost', undefined]);
});

test('a process says once that it is ready, and not before', async () => {
  const heard: string[] = [];
  const end = await within(
    new Promise<End>((resolve) => {
      const command = {
        file: process.execPath,
        args: ['-e', `${READY} ${READY} setInterval(() => {}, 1000);`],
      };
      const guest: GuestProcess = new GuestProcess(command, DEFAULT_LIMITS, {
        onStarted: () => heard.push(`started ${guest.hasStarted}`),
        onReply: () => heard.push('reply'),
        onEnd: resolve,
      });
      heard.push(`made ${guest.hasStarted}`);
    }),
    30_000,
    'the end of a process',
  );
  assert.equal(heard, ['made false', 'started true']);
  assert.match(end.lastWords, /twice/);
});

const quiet = 'a process that starts quietly is stopped in turn, until somebody waits for it';
if (process.platform !== 'linux') console.log(`skipped, it needs /proc: ${quiet}`);
(process.platform === 'linux' ? test : test.skip)(quiet, async () => {
  const command = { file: process.execPath, args: ['-e', 'for (;;);'] };
  const before = childPids();
  const guest = new GuestProcess(
    command,
    DEFAULT_LIMITS,
    { ...deaf, onEnd: () => undefined },
    true,
  );
  try {
    const [pid] = childPids().filter((one) => !before.includes(one));
    const states = async (count: number) => {
      const seen: (string | undefined)[] = [];
      for (; seen.length < count; await new Promise((resolve) => setTimeout(resolve, 2)))
        seen.push(stateOf(pid!));
      return seen;
    };
    assert.ok((await states(100)).includes('T'));
    guest.hurry();
    assert.not.ok((await states(100)).includes('T'));
  } finally {
    await guest.kill();
  }
});

test('what a process says at its end is kept, up to a bound', async () => {
  const end = await endOf(
    `${CELL} at(1, 1); process.stderr.write('no such thing' + 'x'.repeat(1e6)); process.exitCode = 1;`,
  );
  assert.match(end.lastWords, /^no such thing/);
  assert.ok(end.lastWords.length <= 8192, `${end.lastWords.length} characters`);
});

test('a process that runs out of memory says so', async () => {
  const end = await endOf(
    `${CELL} at(1, 1); console.error('FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory'); process.abort();`,
  );
  assert.equal([end.cause, end.call], ['memory', 0]);
});

test('a process that sends something that is no reply is killed', async () => {
  const end = await endOf(
    `require('fs').writeSync(3, Buffer.from([2, 0, 0, 0, 123, 125])); setInterval(() => {}, 1000);`,
  );
  assert.match(end.lastWords, /malformed reply/);
});

test('a file that is not there ends as unstarted', async () => {
  const end = await within(
    new Promise<End>((resolve) => {
      new GuestProcess({ file: '/nowhere/node', args: [] }, DEFAULT_LIMITS, {
        ...deaf,
        onEnd: resolve,
      });
    }),
    10_000,
    'the end',
  );
  assert.is(end.cause, 'unstarted');
  assert.match(end.lastWords, /ENOENT/);
});

test('a child has an empty environment, even when the host has secrets', async () => {
  process.env['SANDBOX_TEST_SECRET'] = 'hunter2';
  const sandbox = new Sandbox({ processes: 1 });
  try {
    await sandbox.run({ key: 'a', text: 'function transform() { return {}; }' }, ['1']);
    const [pid] = await guestProcesses();
    const { stdout } = await promisify(execFile)('ps', ['eww', '-o', 'args=', '-p', String(pid)]);
    assert.match(stdout, /child\.js/);
    assert.not.match(stdout, /hunter2|PATH=/);
    // Node itself passes this variable on while measuring coverage.
    if (existsSync('/proc/self/environ'))
      assert.is(
        readFileSync(`/proc/${pid}/environ`, 'latin1').replace(/^NODE_V8_COVERAGE=[^\0]*\0$/, ''),
        '',
      );
  } finally {
    delete process.env['SANDBOX_TEST_SECRET'];
    await sandbox.close();
  }
});

const HOST = `
  import { Sandbox } from '@gateway/sandbox';
  const sandbox = new Sandbox({ processes: 2, deadlineMs: 60_000 });
  const run = (text) => sandbox.run({ key: text, text }, ['1']);
  await run('function transform() { return {}; }');
`;

test('after close nothing keeps the host process alive', async () => {
  const host = execFile(process.execPath, [
    '--input-type=module',
    '-e',
    `${HOST} await sandbox.close(); console.log('closed');`,
  ]);
  let said = '';
  host.stdout!.on('data', (text: string) => (said += text));
  const code = await within(
    new Promise((resolve) => host.on('exit', resolve)),
    20_000,
    'the host to end by itself',
  );
  assert.is(code, 0);
  assert.is(said.trim(), 'closed');
});

test('a host without a file descriptor for a child is told so, keeps those that it has, and goes on', async () => {
  const script = `
    import { closeSync, openSync } from 'node:fs';
    import { Sandbox } from '@gateway/sandbox';
    const sandbox = new Sandbox({ processes: 1 });
    const fn = { key: 'a', text: 'function transform() { return {}; }' };
    const run = () => sandbox.run(fn, ['1']).then(([{ kind }]) => console.log(kind), ({ message }) => console.log(message));
    const held = [];
    try { for (;;) held.push(openSync('/dev/null')); } catch {}
    // Enough for a memory cell, and too little for pipes.
    for (const fd of held.splice(0, 2)) closeSync(fd);
    await run();
    await run();
    await run();
    for (const fd of held) closeSync(fd);
    await run();
    await sandbox.close();`;
  const shell = [
    '-c',
    'ulimit -n 64 && exec "$0" --input-type=module -e "$1"',
    process.execPath,
    script,
  ];
  const { stdout } = await within(promisify(execFile)('sh', shell), 30_000, 'the host to end');
  const refused =
    'The sandbox cannot start its child processes: Error: no file descriptor is left for a child process';
  assert.equal(stdout.trim().split('\n'), [refused, refused, refused, 'object']);
});

for (const [name, rest, needs] of [
  ['an idle child', 'setInterval(() => {}, 1000);', undefined],
  // On systems without setpriv only an idle child notices that its parent has ended.
  [
    'a child in a loop',
    `void run('function transform() { for (;;); }'); setInterval(() => {}, 1000);`,
    '/usr/bin/setpriv',
  ],
] as const) {
  if (needs !== undefined && !existsSync(needs)) {
    console.log(`skipped, ${needs} is missing: ${name} dies when its parent is killed`);
    continue;
  }
  test(`${name} dies when its parent is killed`, async () => {
    const host = spawn(
      process.execPath,
      ['--input-type=module', '-e', `${HOST} ${rest} console.log('up');`],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    await within(
      new Promise((resolve) => host.stdout.once('data', resolve)),
      20_000,
      'the host to be up',
    );
    if (needs) await new Promise((resolve) => setTimeout(resolve, 500));
    const children = await guestProcesses(host.pid);
    assert.ok(children.length > 0, 'the host has no child');
    host.kill('SIGKILL');
    await until('the child to die', () => !children.some(alive), { withinMs: 10_000 });
  });
}

test.run();
