import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { alive, processes } from './processes.js';
import { until } from './until.js';

const test = suite('support/processes');

test('a process that is dead and not reaped is not alive, its parent is', async () => {
  const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; wait'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [text] = (await once(parent.stdout, 'data')) as [Buffer];
    const child = Number(text.toString());
    assert.ok(alive(child));
    // A stopped process reaps no children.
    parent.kill('SIGSTOP');
    await until('the shell to be stopped', () => processes().get(parent.pid!)?.state === 'T');
    process.kill(child, 'SIGKILL');
    await until('its child to be dead', () => processes().get(child)?.state === 'Z');
    assert.ok(process.kill(child, 0), 'it still has its id');
    assert.not.ok(alive(child));
    assert.ok(alive(parent.pid!));
    assert.is(processes().get(child)?.parent, parent.pid);
  } finally {
    parent.kill('SIGKILL');
  }
  await once(parent, 'exit');
  assert.not.ok(alive(parent.pid!));
});

test.run();
