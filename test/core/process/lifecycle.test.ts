import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Lifecycle } from '#core/process/lifecycle';
import { createLog } from '#core/logging/log';

const lifecycle = suite('core/process/lifecycle');

function recorded(): {
  lines: { message: string; part?: string }[];
  log: ReturnType<typeof createLog>;
} {
  const lines: { message: string; part?: string }[] = [];
  const log = createLog({
    level: 'debug',
    name: 'test',
    destination: { write: (line) => lines.push(JSON.parse(line) as { message: string }) },
  });
  return { lines, log };
}

lifecycle('what was started last is closed first, each after the other', async () => {
  const closed: string[] = [];
  const it = new Lifecycle(recorded().log);
  for (const name of ['database', 'sources', 'http']) {
    it.add(name, async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      closed.push(name);
    });
  }
  await it.close({ deadlineMs: 60_000 });
  assert.equal(closed, ['http', 'sources', 'database']);
});

lifecycle('a part that fails does not keep the others open', async () => {
  const { lines, log } = recorded();
  const closed: string[] = [];
  const it = new Lifecycle(log);
  it.add('first', () => void closed.push('first'));
  it.add('throws', () => {
    throw new Error('at once');
  });
  it.add('rejects', () => Promise.reject(new Error('later')));
  await it.close({ deadlineMs: 60_000 });
  assert.equal(closed, ['first']);
  assert.equal(
    lines.filter(({ message }) => message === 'Closing failed.').map(({ part }) => part),
    ['rejects', 'throws'],
  );
});

lifecycle('after the deadline the rest is told to close and nobody waits', async () => {
  const { lines, log } = recorded();
  const closed: string[] = [];
  const it = new Lifecycle(log);
  it.add('first', () => void closed.push('first'));
  it.add('second', () => void closed.push('second'));
  it.add('hangs', () => new Promise(() => undefined));
  await it.close({ deadlineMs: 20 });
  assert.equal(closed, ['second', 'first']);
  assert.equal(
    lines.filter(({ message }) => message.startsWith('Shutdown timed out')).map(({ part }) => part),
    ['hangs'],
  );
});

lifecycle('closing twice closes once, and both wait for the end', async () => {
  let closed = 0;
  const it = new Lifecycle(recorded().log);
  it.add('part', async () => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    closed++;
  });
  const first = it.close({ deadlineMs: 60_000 });
  await it.close({ deadlineMs: 60_000 });
  assert.is(closed, 1);
  await first;
});

/** A process that waits for a signal; a `stubborn` one then waits forever. */
async function waiting({ stubborn }: { stubborn: boolean }) {
  const script = `
    const { untilSignal } = await import(${JSON.stringify(fileURLToPath(import.meta.resolve('#core/process/lifecycle')))});
    const { silentLog } = await import(${JSON.stringify(fileURLToPath(import.meta.resolve('#core/logging/log')))});
    const alive = setInterval(() => undefined, 1000);
    const signal = untilSignal(silentLog);
    console.log('ready');
    console.log('got ' + (await signal));
    if (${!stubborn}) clearInterval(alive);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const text: string[] = [];
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => text.push(chunk));
  await once(child.stdout, 'data');
  return { child, text };
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  lifecycle(`${signal} starts the drain and the process ends by itself with status 0`, async () => {
    const { child, text } = await waiting({ stubborn: false });
    child.kill(signal);
    assert.equal(await once(child, 'close'), [0, null]);
    assert.is(text.join(''), `ready\ngot ${signal}\n`);
  });
}

lifecycle('a second signal ends the process at once with status 1', async () => {
  const { child, text } = await waiting({ stubborn: true });
  child.kill('SIGTERM');
  while (!text.join('').includes('got')) await once(child.stdout, 'data');
  child.kill('SIGINT');
  assert.equal(await once(child, 'close'), [1, null]);
});

lifecycle.run();
