import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { Command } from './confinement.js';
import { CpuShare, cpuTimeMs } from './cpu-share.js';
import { watchDeadline } from './deadline.js';
import {
  type SandboxLimits,
  decodeReply,
  encodeChunk,
  FrameReader,
  REPLY_FD,
  type Chunk,
  type Reply,
} from '../protocol/protocol.js';
import { openProgress, readProgress, STARTED } from '../protocol/progress.js';

/** With the call that was running, if any. */
export interface End {
  /**
   * `unstarted`: before any call. `lost`: killed from outside, crashed, or sent a malformed reply.
   */
  cause: 'unstarted' | 'overran' | 'memory' | 'lost';
  call: number | undefined;
  /** The processor time of a call that overran because it got too little of it. */
  starvedMs: number | undefined;
  /**
   * The process received SIGKILL, which V8 does not use, or could not start because the system has
   * too many processes. Neither is the command's fault.
   */
  killed: boolean;
  /** Since the process last received work or sent an answer. */
  silentMs: number;
  /** The beginning of the standard error output, for humans. */
  lastWords: string;
}

/**
 * `onStarted` is called once, when the process accepts calls; `onEnd` once, after all other calls.
 */
export interface Listener {
  onStarted(): void;
  onReply(reply: Reply): void;
  onEnd(end: End): void;
}

const LAST_WORDS_CHARS = 4096;
const OUT_OF_MEMORY = /out of memory|Allocation failed|bad_alloc|Cannot allocate memory/i;

/** For sizes, logs and reasons beside the output. */
const FRAME_BYTES_BESIDE_OUTPUT = 8 * 1024 * 1024;

/** Has at most one chunk at a time. */
export class GuestProcess {
  readonly #process: ChildProcess;
  readonly #progressFd: number;
  readonly #limits: SandboxLimits;
  readonly #listener: Listener;
  readonly #closed: Promise<void>;
  readonly #share = new CpuShare((name) => this.#process.kill(name));
  #watch: NodeJS.Timeout | undefined;
  #chunk: number | undefined;
  /** The process is throttled while it starts or processes its chunk. */
  #quietly = false;
  #lastSignAt = performance.now();
  #lastWords = '';
  #overran: { readonly call: number; readonly starvedMs?: number } | undefined;
  #killed = false;
  #started = false;

  /**
   * Throws if the progress cell or the pipes cannot be created; other failures end the process as
   * `unstarted`.
   */
  constructor(command: Command, limits: SandboxLimits, listener: Listener, quietly = false) {
    this.#limits = limits;
    this.#listener = listener;
    this.#progressFd = openProgress();
    try {
      this.#process = spawn(command.file, command.args, {
        env: {},
        // The protocol has its own pipe, so that output of Node or V8 cannot be mistaken for
        // replies.
        stdio: ['pipe', 'ignore', 'pipe', 'pipe', this.#progressFd],
        windowsHide: true,
      });
      this.#closed = this.#listen();
      this.#quietly = quietly;
      if (quietly) this.#share.begin();
      this.#startWatch();
    } catch (error) {
      closeSync(this.#progressFd);
      throw error;
    }
  }

  get hasStarted(): boolean {
    return this.#started;
  }

  /** Ends throttling during startup, because calls are waiting for the process. */
  hurry(): void {
    if (this.#started) return;
    this.#quietly = false;
    this.#share.end();
  }

  /**
   * Call only after the previous chunk was answered. `quietly` throttles the process, because the
   * chunk may overrun.
   */
  send(chunk: Chunk, quietly = false): void {
    this.#chunk = chunk.id;
    this.#quietly = quietly;
    if (quietly) this.#share.begin();
    this.#lastSignAt = performance.now();
    this.#startWatch();
    this.#process.stdin!.write(encodeChunk(chunk));
  }

  rest(): void {
    this.#chunk = undefined;
    this.#share.end();
  }

  /** Resolves after `onEnd`. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#closed;
  }

  #listen(): Promise<void> {
    const child = this.#process;
    if (!child.stdin) {
      // The pipes could not be created. Node also emits this later as an event, which needs a
      // listener.
      child.on('error', () => undefined);
      throw new Error('no file descriptor is left for a child process');
    }
    const frames = new FrameReader(this.#limits.maxOutputBytes + FRAME_BYTES_BESIDE_OUTPUT);
    // The child ended before reading everything, which `onEnd` reports.
    child.stdin.on('error', () => undefined);
    child.stderr!.on('data', (bytes: Buffer) => {
      if (this.#lastWords.length < LAST_WORDS_CHARS)
        this.#lastWords += bytes.toString('latin1').slice(0, LAST_WORDS_CHARS);
    });
    (child.stdio[REPLY_FD] as Readable).on('data', (bytes: Buffer) => {
      this.#lastSignAt = performance.now();
      try {
        for (const body of frames.push(bytes)) this.#hear(decodeReply(body));
      } catch (error) {
        this.#lastWords = error instanceof Error ? error.message : String(error);
        child.kill('SIGKILL');
      }
    });
    return new Promise((resolve) => {
      let ended = false;
      const end = (): void => {
        if (ended) return;
        ended = true;
        clearInterval(this.#watch);
        this.#share.end();
        const ending = this.#explain();
        closeSync(this.#progressFd);
        resolve();
        this.#listener.onEnd(ending);
      };
      child.on('close', (_code, signal) => {
        this.#killed = signal === 'SIGKILL';
        end();
      });
      child.on('error', (error) => {
        this.#lastWords ||= error.message;
        // The system has too many processes (fork(2)), so no other command would work either.
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') this.#killed = true;
        // A process that never started emits no `close`.
        if (child.pid === undefined) end();
      });
    });
  }

  #hear(reply: Reply): void {
    if (reply.chunk !== STARTED) return this.#listener.onReply(reply);
    if (this.#started) throw new Error('The child process reported twice that it is ready.');
    this.#started = true;
    this.#quietly = false;
    this.#share.end();
    this.#listener.onStarted();
  }

  #explain(): End {
    const { chunk, call } = readProgress(this.#progressFd);
    const silentMs = Math.round(performance.now() - this.#lastSignAt);
    const starvedMs = this.#overran?.starvedMs;
    const told = { starvedMs, killed: this.#killed, silentMs, lastWords: this.#lastWords.trim() };
    if (this.#overran) return { cause: 'overran', call: this.#overran.call, ...told };
    if (!this.#started) return { cause: 'unstarted', call: undefined, ...told };
    const running = chunk === this.#chunk ? call : undefined;
    return {
      cause: OUT_OF_MEMORY.test(this.#lastWords) ? 'memory' : 'lost',
      call: running,
      ...told,
    };
  }

  /** Runs while the process starts or has work. An idle process needs no timer. */
  #startWatch(): void {
    if (this.#watch) return;
    const { pid } = this.#process;
    const watch = watchDeadline(this.#limits.deadlineMs, () =>
      pid === undefined ? undefined : cpuTimeMs(pid),
    );
    let lookedAt = performance.now();
    let stoppedBefore = this.#share.stoppedMs();
    this.#watch = setInterval(() => {
      if (this.#chunk === undefined && this.hasStarted) {
        clearInterval(this.#watch);
        this.#watch = undefined;
        return;
      }
      const now = performance.now();
      const stopped = this.#share.stoppedMs();
      const seen = watch.look(
        readProgress(this.#progressFd),
        now - lookedAt,
        stopped - stoppedBefore,
      );
      [lookedAt, stoppedBefore] = [now, stopped];
      if (seen.state === 'long') this.#share.begin();
      else if (seen.state === 'fine' && !this.#quietly) this.#share.end();
      if (seen.state === 'fine' || seen.state === 'long') return;
      if (seen.state === 'overran') this.#overran = seen;
      this.#process.kill('SIGKILL');
    }, watch.everyMs);
  }
}
