import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { freeze } from '../frozen.js';
import { discard, forget, keep } from './keep.js';

export interface ServerCommand {
  /** The name in messages: `Postgres`. */
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  /** The temp folder, which `close` deletes. */
  readonly folder: string;
  /** The file for its output. */
  readonly log: string;
  /** The user it runs as, if not the current one. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /** Shuts it down gracefully. */
  readonly stopSignal: NodeJS.Signals;
  /** Ends it like a crash; default SIGKILL. */
  readonly crashSignal?: NodeJS.Signals;
  readonly ready: () => Promise<boolean>;
  readonly startWithinMs: number;
}

/** A private server that can be stopped, crashed and restarted on the same port and folder. */
export class ServerProcess {
  readonly #command: ServerCommand;
  #running: { child: ChildProcess; ended: Promise<void> } | undefined;

  constructor(command: ServerCommand) {
    this.#command = command;
  }

  /** The pid of the running process; throws if it does not run. */
  get pid(): number {
    const pid = this.#running?.child.pid;
    if (pid === undefined) throw new Error(`${this.#command.name} does not run`);
    return pid;
  }

  get folder(): string {
    return this.#command.folder;
  }

  get log(): string {
    return this.#command.log;
  }

  /** Starts the server and waits until it answers. Throws with the end of its log on failure. */
  async start(): Promise<void> {
    const { name, ready, startWithinMs, log } = this.#command;
    if (this.#running) throw new Error(`${name} runs already`);
    const { ended, failure } = this.#spawn();
    let over = false;
    void ended.then(() => (over = true));
    const deadline = Date.now() + startWithinMs;
    while (!(await ready())) {
      if (!over && Date.now() < deadline) {
        await sleep(50);
        continue;
      }
      const how =
        failure() ?? (over ? 'ended at once' : `did not answer within ${startWithinMs / 1000} s`);
      await this.#end('SIGKILL');
      throw new Error(`${name} ${how}; the end of its log:\n${tail(log)}`);
    }
  }

  /** Shuts it down gracefully and waits for the exit. */
  stop(): Promise<void> {
    return this.#end(this.#command.stopSignal);
  }

  crash(): Promise<void> {
    return this.#end(this.#command.crashSignal ?? 'SIGKILL');
  }

  /** Ends it and its child processes with SIGKILL, like a machine that dies. */
  async kill(): Promise<void> {
    freeze(this.pid)('SIGKILL');
    await this.#end('SIGKILL');
  }

  async close(): Promise<void> {
    await this.stop();
    discard(this.#command.folder);
  }

  /**
   * Spawns detached, so that Ctrl-C does not end it before the tests that use it; unreferenced, so
   * that it does not hold the event loop.
   */
  #spawn(): { ended: Promise<void>; failure: () => string | undefined } {
    const { program, args, folder, log, user, stopSignal } = this.#command;
    const output = fs.openSync(log, 'a');
    const child = spawn(program, args, {
      ...user,
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' },
      stdio: ['ignore', output, output],
      detached: true,
    });
    fs.closeSync(output);
    let failure: string | undefined;
    const ended = new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', (error) => {
        failure = `could not be run: ${error.message}`;
        resolve();
      });
    });
    child.unref();
    if (child.pid !== undefined) keep(child.pid, stopSignal);
    this.#running = { child, ended };
    return { ended, failure: () => failure };
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (!this.#running) return;
    const { child, ended } = this.#running;
    child.ref();
    child.kill(signal);
    const impatient = setTimeout(() => child.kill('SIGKILL'), 20_000);
    await ended;
    clearTimeout(impatient);
    if (child.pid !== undefined) forget(child.pid);
    this.#running = undefined;
  }
}

function tail(file: string): string {
  return fs.readFileSync(file, 'utf8').trimEnd().split('\n').slice(-20).join('\n');
}
