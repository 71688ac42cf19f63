// deadline: 300 s
import { spawn, type ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { gateway, runGateway, type GatewayProcess } from '../support/gateway.js';
import { freePort } from '../support/ports.js';
import { tempFolder } from '../support/start/keep.js';
import { until } from '../support/until.js';

const start = suite('e2e/start');

let running: GatewayProcess | undefined;

start.after.each(async () => {
  await running?.kill(); // a failed test leaves it running
});

const page = fs.readFileSync(
  fileURLToPath(new URL('../../docs/start.md', import.meta.url)),
  'utf8',
);

interface Block {
  readonly kind: 'sh' | 'text';
  readonly text: string;
}

/** The commands of the page and their output, in order. */
function blocks(): Block[] {
  return [...page.matchAll(/^```(sh|text)\n([^]*?)^```$/gm)].map(([, kind, text = '']) => ({
    kind: kind as Block['kind'],
    text,
  }));
}

/**
 * Agents learn of changes while a reader moves on to the next block; on a busy machine this takes a
 * while.
 */
const READING_MS = 500;

/** A shell that keeps its variables between blocks, like the reader's. */
class Shell {
  readonly #child: ChildProcess;
  output = '';

  constructor(folder: string) {
    this.#child = spawn('sh', {
      cwd: folder,
      stdio: 'pipe',
      env: { PATH: process.env['PATH'], HOME: folder, LANG: 'C.UTF-8' },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (text: Buffer) => (this.output += text.toString()));
  }

  /** Types a block at a reader's speed, and waits for the end of its last command. */
  async type(text: string): Promise<void> {
    await sleep(READING_MS);
    const before = this.output.length;
    this.#child.stdin?.write(`${text}\nprintf '\\ndone with %s\\n' $?\n`);
    const [, status] = await until(
      `the end of\n${text}`,
      () => /^done with (\d+)$/m.exec(this.output.slice(before)),
      { withinMs: 60_000 },
    );
    assert.is(status, '0', `${text}\n${this.output.slice(before)}`);
  }

  /**
   * Ends the shell; kills it if its last command hangs, so that the command's failure is reported.
   */
  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.stdin?.end('exit\n');
    const impatient = setTimeout(() => this.#child.kill('SIGKILL'), 5_000);
    await ended;
    clearTimeout(impatient);
  }
}

/** A line of the page as a pattern: `…` stands for varying parts; leading whitespace is ignored. */
function pattern(line: string): RegExp {
  const parts = line.trim().split('…');
  return new RegExp(
    parts
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\s+/g, '\\s+'))
      .join('.*'),
  );
}

start('every command of docs/start.md does what the page says', async () => {
  const folder = tempFolder('start');
  fs.chmodSync(folder, 0o755); // if started by root, Postgres runs as another user
  const screen = (running = gateway(['dev'], { folder }));
  await screen.line('Ctrl-C stops', { withinMs: 60_000 });

  // The displayed addresses are authoritative.
  const shown = (name: string, at: RegExp): string => {
    const found = new RegExp(`^ +${name} +${at.source}`, 'm').exec(screen.stdout)?.[1];
    assert.ok(found, `${name} in\n${screen.stdout}`);
    return found;
  };
  const addresses = new Map<string, string>([
    ['127.0.0.1:5005', shown('API', /http:\/\/([\d.:]+)/)],
    ['127.0.0.1:5008', shown('health', /\S+ +http:\/\/([\d.:]+)/)],
    ['127.0.0.1:5010', shown('inbox', /http:\/\/([\d.:]+)/)],
    ['127.0.0.1:4566', shown('queue', /http:\/\/([\d.:]+)/)],
    ['3000', String(await freePort())],
  ]);
  const here = (text: string) =>
    [...addresses].reduce((done, [written, actual]) => done.replaceAll(written, actual), text);

  const shell = new Shell(folder);
  let commands = 0;
  try {
    for (const { kind, text } of blocks()) {
      if (kind === 'sh') {
        if (text.includes('npm start')) continue; // already running; dev.test.ts tests the flags
        await shell.type(here(text));
        commands++;
        continue;
      }
      for (const line of here(text)
        .split('\n')
        .filter((it) => it.trim())) {
        const wanted = pattern(line);
        await until(
          `the line\n${line}\nof the page in\n${shell.output}${screen.stdout}`,
          () => wanted.test(shell.output) || wanted.test(screen.stdout),
        );
      }
    }
  } finally {
    await shell.close();
  }
  assert.ok(commands >= 8, `only ${commands} blocks of the page were run`);
  assert.is((await screen.terminate({ signal: 'SIGINT' })).code, 0);
});

start('the files that docs/start.md lists are the ones in ./.gateway', async () => {
  const folder = tempFolder('start');
  fs.chmodSync(folder, 0o755);
  const screen = (running = gateway(['dev'], { folder }));
  await screen.line('Ctrl-C stops', { withinMs: 60_000 });
  const there = fs
    .readdirSync(path.join(folder, '.gateway'))
    .filter((name) => name !== '.gitignore');
  const listed = [...page.matchAll(/^\| `([\w.]+)\/?` \|/gm)].map(([, name]) => name);
  assert.equal(listed.sort(), there.sort());
  assert.is((await screen.terminate()).code, 0);
});

start('the flags that docs/start.md lists are flags of gateway dev', async () => {
  const { stdout } = await runGateway(['dev', '--help']);
  const flags = [...page.matchAll(/^\| `npm start -- ([^`]*)`/gm)].flatMap(
    ([, text = '']) => text.match(/--[a-z-]+/g) ?? [],
  );
  assert.ok(flags.length >= 4);
  for (const flag of flags.filter((name) => name !== '--help')) assert.match(stdout, `${flag}`);
});

start.run();
