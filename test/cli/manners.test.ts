import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../support/gateway.js';
import { loopback } from '../support/ports.js';
import { onTerminal, shownOnTerminal } from '../support/terminal.js';

const manners = suite('cli/manners');

const bin = fileURLToPath(new URL('../../bin/gateway.js', import.meta.url));
const ESCAPE = '\u001b[';

manners('colour is for a terminal alone, and NO_COLOR takes it away', async () => {
  for (const args of [['agent', '--help'], ['utils']]) {
    assert.ok(
      (await shownOnTerminal(args)).includes(ESCAPE),
      `${args.join(' ')} is coloured on a terminal`,
    );
    assert.not.ok(
      (await shownOnTerminal(args, { env: { NO_COLOR: '1' } })).includes(ESCAPE),
      args.join(' '),
    );
    assert.not.ok(
      (await runGateway(args, { env: { NO_COLOR: '' } })).stdout.includes(ESCAPE),
      args.join(' '),
    );
  }
});

manners('a table is as wide as the terminal and no wider', async () => {
  for (const columns of [60, 100]) {
    const shown = await shownOnTerminal(['plugins'], { columns });
    const lines = shown.trimEnd().split('\r\n');
    assert.ok(lines.length > 6 && lines.some((line) => line.includes('pullmetrics')));
    assert.equal(
      lines.filter((line) => line.length > columns),
      [],
      `${columns} columns`,
    );
  }
});

manners('help is as wide as the terminal and no wider', async () => {
  for (const columns of [60, 120]) {
    const shown = await shownOnTerminal(['retry', '--help'], { columns, env: { NO_COLOR: '1' } });
    const lines = shown.trimEnd().split('\r\n');
    assert.ok(lines.length > 30);
    const tooWide = lines.filter((line) => line.length > columns && !line.startsWith('  $ '));
    assert.equal(tooWide, [], `${columns} columns`);
  }
});

manners('a reader that closes early is no failure', async () => {
  for (const args of [[], ['config'], ['config', 'schema'], ['server', '--help']]) {
    const child = spawn(process.execPath, [bin, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.destroy();
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const [code] = (await once(child, 'close')) as [number | null];
    assert.equal([code, stderr], [0, ''], args.join(' '));
  }
});

manners(
  'Ctrl-C ends a command that waits at once, with the status of a shell and no stack',
  async () => {
    // Accepts connections and never answers, like a database behind a broken firewall.
    const connected: (() => void)[] = [];
    const silent = net.createServer((socket) => {
      socket.on('error', () => undefined);
      for (const tell of connected.splice(0)) tell();
    });
    const port = await loopback(silent);
    try {
      const reached = new Promise<void>((resolve) => connected.push(resolve));
      const running = onTerminal([
        'migrate',
        'up',
        '--db-host',
        '127.0.0.1',
        '--db-port',
        String(port),
      ]);
      await reached;
      running.type('\u0003');
      assert.is(await running.ended, 130);
      assert.is(running.shown.replace('^C', '').trim(), '');
    } finally {
      silent.close();
    }
  },
);

manners('a topic without a command lists its commands', async () => {
  for (const [topic, command] of [
    ['utils', 'utils doctor'],
    ['utils quarantine', 'utils quarantine list'],
    ['migrate', 'migrate up'],
    ['license', 'license show'],
  ] as const) {
    const { stdout, stderr, code } = await runGateway(topic.split(' '));
    assert.equal([code, stderr], [0, ''], topic);
    assert.match(stdout, command);
  }
});

manners.run();
