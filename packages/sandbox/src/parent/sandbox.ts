import { childCommands, type Command } from './confinement.js';
import { GuestProcess, type End } from './guest-process.js';
import {
  FunctionQueues,
  type QueuedCall,
  type ProjectRest,
  type Taken,
} from './function-queues.js';
import {
  DEFAULT_LIMITS,
  type SandboxLimits,
  type Payload,
  type Reply,
} from '../protocol/protocol.js';
import { refuse, SandboxError, type Refusal, type TransformResult } from '../protocol/result.js';

/**
 * The key changes with the text, such as the source's id with a version. Functions of a project
 * share its part of the sandbox. By default, a function is its own project.
 */
export interface TransformFunction {
  key: string;
  text: string;
  project?: string;
}

/** Consecutive. Then the sandbox reports that it cannot start processes. */
const FAILED_STARTS_TOLERATED = 3;
/** A call is refused as the cause after this many processes have died during it. */
const DEATHS_TOLERATED = 3;
/**
 * How long a call running apart may delay a new function. A function's first call usually takes a
 * few milliseconds.
 */
const TRIAL_MS = 100;

type OnResult = (index: number, result: TransformResult) => void;

interface Work {
  id: number;
  key: string;
  calls: QueuedCall[];
  /** Answers arrive in the order of the calls. */
  answered: number;
  apart: boolean;
  since: number;
  interrupted: boolean;
  /** Unanswered calls of cancelled work are not run again. */
  cancelled: boolean;
}

interface Slot {
  command: Command;
  process: GuestProcess;
  work: Work | undefined;
}

/**
 * Runs untrusted functions in a few child processes.
 *
 * 1. `run` adds its payloads to the function's queue. Processes start on demand and are kept.
 * 2. A ready process takes a bounded number of calls from the next queue and runs them one by one.
 *   A starting process takes none, because another may be ready sooner.
 * 3. A call that exceeds its deadline or memory ends its process and is refused. The other calls of
 *   its chunk run again in another process, which is safe because calls have no effects.
 * 4. If a process dies for an unknown reason, its calls run again, and possible causes run alone.
 * 5. A process ended by a call is replaced immediately, so that the next call need not wait for a
 *   start.
 * 6. Until it has answered a call, and after a recent overrun, a function runs apart, in a process
 *   that no tried function waits for. Such a process is throttled, as is a replacement that no call
 *   waits for. While a new function of another project waits, a call that runs apart is soon
 *   interrupted and runs again later, so that many looping functions delay a good function only a
 *   little.
 * 7. `cancel` withdraws unanswered calls, and `close` kills the processes.
 */
export class Sandbox {
  readonly #limits: SandboxLimits;
  readonly #queues: FunctionQueues;
  readonly #slots = new Set<Slot>();
  readonly #rests = new Set<NodeJS.Timeout>();
  /** Fires when a call that runs apart must be interrupted for a new function. */
  #trial: NodeJS.Timeout | undefined;
  /** Commands that may work, strictest first. Undefined until `#prepare` has found them. */
  #commands: Command[] | undefined;
  #preparing = false;
  #failedStarts = 0;
  #worked = false;
  #lastChunk = 0;
  #closed = false;

  /** Starts no process. */
  constructor(limits: Partial<SandboxLimits> = {}) {
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    this.#queues = new FunctionQueues(this.#limits.processes);
  }

  /**
   * Returns results in order. `onResult` receives each result immediately and must not throw.
   * Rejects only with a `SandboxError`. Payloads without a result may then be run again; `onResult`
   * still receives the results of calls that continued.
   *
   * @param messages the second arguments, as JSON, for a function that takes one (`takesMessage`)
   */
  run(
    fn: TransformFunction,
    payloads: readonly Payload[],
    onResult?: OnResult,
    messages?: readonly string[],
  ): Promise<TransformResult[]> {
    if (payloads.length === 0) return Promise.resolve([]);
    if (this.#closed) return Promise.reject(closedError());
    return new Promise((resolve, reject) => {
      const results = new Array<TransformResult>(payloads.length);
      let missing = payloads.length;
      let failed = false;
      const fail = (error: Error): void => {
        failed = true;
        reject(error);
      };
      const calls = payloads.map((payload, index): QueuedCall => {
        const settle = (result: TransformResult): void => {
          if (failed) return onResult?.(index, result);
          results[index] = result;
          missing -= 1;
          onResult?.(index, result);
          if (missing === 0) resolve(results);
        };
        const message = messages?.[index];
        return { text: fn.text, payload, message, deaths: 0, settle, fail };
      });
      this.#queues.add(fn.key, calls, fn.project);
      this.#dispatch();
    });
  }

  /** Rejects unanswered calls, or only those that no process is running. */
  cancel(key: string, which: 'all' | 'waiting' = 'all'): void {
    const calls = this.#queues.drop(key);
    for (const { work, process } of this.#slots) {
      if (work?.key !== key) continue;
      work.cancelled = true;
      if (which === 'waiting') continue;
      calls.push(...work.calls.splice(work.answered));
      void process.kill();
    }
    for (const call of calls) call.fail(cancelledError());
  }

  /** Undefined before the first run. */
  get command(): Readonly<Command> | undefined {
    return this.#commands?.[0];
  }

  get processes(): number {
    return this.#slots.size;
  }

  /** Rejects unanswered runs. Resolves when the processes are gone. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#rests) clearTimeout(timer);
    clearTimeout(this.#trial);
    const error = closedError();
    const unanswered = [...this.#slots].flatMap(
      (slot) => slot.work?.calls.slice(slot.work.answered) ?? [],
    );
    for (const call of [...unanswered, ...this.#queues.clear()]) call.fail(error);
    await Promise.all([...this.#slots].map((slot) => slot.process.kill()));
  }

  #dispatch(): void {
    if (this.#closed) return;
    const command = this.#commands?.[0];
    if (!command) return void this.#prepare();
    const started = [...this.#slots].filter((slot) => slot.process.hasStarted);
    const ready = started.filter((slot) => slot.work === undefined);
    // A function that runs apart never gets the only started process: tried functions would wait
    // for another one to start.
    const sparesOne = this.#limits.processes === 1 || started.length > 1 || this.#queues.areAllNew;
    while (ready.length > 0) {
      const taken = this.#queues.take(sparesOne);
      if (!taken) break;
      // A call that runs apart gets the youngest process, because older ones have already compiled
      // functions.
      this.#give((taken.apart ? ready.pop() : ready.shift())!, taken);
    }
    this.#startMissing(command, this.#slots.size - started.length);
    this.#makeRoom();
  }

  /**
   * Interrupts a call that has run apart for `TRIAL_MS` if another project's new function waits.
   */
  #makeRoom(): void {
    if (this.#trial || this.#limits.processes === 1) return;
    const slot = [...this.#slots].find(({ work }) => work?.apart && !work.interrupted);
    if (!slot?.work || !this.#queues.newWaits(slot.work.key)) return;
    const leftMs = slot.work.since + TRIAL_MS - performance.now();
    if (leftMs > 0) {
      this.#trial = setTimeout(() => {
        this.#trial = undefined;
        this.#makeRoom();
      }, leftMs);
      return;
    }
    slot.work.interrupted = true;
    this.#rest(this.#queues.interrupted(slot.work.key, TRIAL_MS));
    void slot.process.kill();
  }

  #startMissing(command: Command, starting: number): void {
    const most = this.#limits.processes - this.#slots.size;
    if (most <= 0) return;
    try {
      for (let missing = Math.min(most, this.#queues.wanted - starting); missing > 0; missing -= 1)
        this.#open(command);
    } catch (error) {
      queueMicrotask(() => this.#giveUp(String(error), error));
    }
  }

  /** Determines once how to start a process on this machine. */
  async #prepare(): Promise<void> {
    if (this.#preparing) return;
    this.#preparing = true;
    try {
      this.#commands = await childCommands(this.#limits);
    } catch (error) {
      this.#giveUp(String(error), error);
      return;
    } finally {
      this.#preparing = false;
    }
    this.#dispatch();
  }

  /** Throws if the constructor of `GuestProcess` throws. */
  #open(command: Command, quietly = false): void {
    const slot: Slot = {
      command,
      work: undefined,
      process: new GuestProcess(
        command,
        this.#limits,
        {
          onStarted: () => {
            this.#failedStarts = 0;
            this.#dispatch();
          },
          onReply: (reply) => this.#settle(slot, reply),
          onEnd: (end) => this.#bury(slot, end),
        },
        quietly,
      ),
    };
    this.#slots.add(slot);
  }

  /** Replaces a process ended by a call. Keeps at least two, if allowed, for the next such call. */
  #refill(): void {
    const command = this.#commands?.[0];
    if (!command || this.#slots.size >= this.#limits.processes) return;
    const left = [...this.#slots].filter((slot) => slot.process.hasStarted).length;
    if (left === 0) for (const { process } of this.#slots) process.hurry();
    try {
      this.#open(command, left > 0 && !this.#queues.newWaits());
      if (this.#slots.size < Math.min(2, this.#limits.processes)) this.#open(command);
    } catch {
      // No call waits for this process. The next call that needs one tries again and reports the
      // error.
    }
  }

  #give(slot: Slot, { key, calls, apart }: Taken): void {
    this.#lastChunk = (this.#lastChunk % 0x7fffffff) + 1;
    slot.work = {
      id: this.#lastChunk,
      key,
      calls,
      answered: 0,
      apart,
      since: performance.now(),
      interrupted: false,
      cancelled: false,
    };
    const payloads = calls.map((call) => call.payload);
    const { text, message } = calls[0]!;
    const messages = message === undefined ? undefined : calls.map((call) => call.message ?? '{}');
    slot.process.send(
      { id: this.#lastChunk, key, text, payloads, ...(messages && { messages }) },
      apart,
    );
  }

  /**
   * Throws if the reply does not match the process's work, because a function must then have taken
   * over the process.
   */
  #settle(slot: Slot, reply: Reply): void {
    const { work } = slot;
    this.#worked = true;
    for (const [offset, answer] of reply.answers.entries()) {
      const call = work?.calls[work.answered];
      const asked = reply.chunk === work?.id && reply.first + offset === work.answered;
      if (!call || !asked) {
        throw new Error('The child process sent an answer that does not match its calls.');
      }
      work.answered += 1;
      call.settle(answer);
    }
    if (!work) return;
    if (work.answered < work.calls.length) return;
    slot.work = undefined;
    slot.process.rest();
    this.#queues.answered(work.key, work.calls.length, performance.now() - work.since);
    this.#queues.release(work.key, []);
    this.#dispatch();
  }

  #bury(slot: Slot, end: End): void {
    this.#slots.delete(slot);
    if (this.#closed) return;
    const { work } = slot;
    const { refused, again } = work ? this.#blame(work, end) : { refused: [], again: [] };
    if (work) {
      this.#queues.release(work.key, work.cancelled ? [] : again);
      this.#refill();
    }
    // The queue is updated first, because `onResult` may cancel the remaining calls.
    for (const { call, answer } of refused) call.settle(answer);
    if (work?.cancelled) for (const call of again) call.fail(cancelledError());
    if (end.cause === 'unstarted') this.#countFailedStart(slot, end);
    this.#dispatch();
  }

  #countFailedStart(slot: Slot, end: End): void {
    if (!this.#worked && !end.killed && this.#commands && this.#commands.length > 1) {
      if (this.#commands[0] === slot.command) this.#commands.shift();
      return;
    }
    this.#failedStarts += 1;
    if (this.#failedStarts >= FAILED_STARTS_TOLERATED)
      this.#giveUp(end.lastWords || 'they exit without an error message');
  }

  /** Refuses the call that ended a process, if it is known. The other calls run again. */
  #blame(
    work: Work,
    end: End,
  ): { refused: { call: QueuedCall; answer: TransformResult }[]; again: QueuedCall[] } {
    const unanswered = work.calls.slice(work.answered);
    if (unanswered.length === 0 || (work.interrupted && end.cause === 'lost'))
      return { refused: [], again: unanswered };
    let offender = end.call === undefined ? undefined : work.calls[end.call];
    // A payload too large to be read ends a process between calls, so the only unanswered call is
    // the cause.
    if (end.cause === 'memory' && unanswered.length === 1) offender ??= unanswered[0];
    let refusal: Refusal | undefined;
    if (end.cause === 'overran') refusal = this.#refuseOverrun(end.starvedMs);
    else if (end.cause === 'memory' && offender) {
      refusal = refuse(
        'memory',
        `The function exceeded its memory limit of ${this.#limits.memoryMb} MB.`,
      );
    } else for (const call of offender ? [offender] : unanswered) call.deaths += 1;
    const crash = refuse(
      'crashed',
      `The process that ran the function died ${DEATHS_TOLERATED} times during this call.`,
    );
    const refused: { call: QueuedCall; answer: TransformResult }[] = [];
    const again = unanswered.filter((call) => {
      const given =
        call === offender && refusal
          ? refusal
          : call.deaths >= DEATHS_TOLERATED
            ? crash
            : undefined;
      if (!given) return true;
      const starved = end.starvedMs !== undefined;
      if (!starved) this.#rest(this.#queues.suspect(work.key, end.silentMs));
      refused.push({
        call,
        answer: { ...given, ...(starved ? { starved } : {}), logs: [], durationMs: end.silentMs },
      });
      return false;
    });
    return { refused, again };
  }

  #refuseOverrun(starvedMs: number | undefined): Refusal {
    const happened = `The function did not return within its deadline of ${this.#limits.deadlineMs} ms`;
    if (starvedMs === undefined) return refuse('timeout', `${happened}.`);
    const fix = 'The machine is overloaded: reduce its load, then try the message again.';
    return refuse(
      'timeout',
      `${happened}, during which it got ${starvedMs} ms of processor time.`,
      fix,
    );
  }

  #rest(rest: ProjectRest | undefined): void {
    if (!rest) return;
    const timer = setTimeout(() => {
      this.#rests.delete(timer);
      rest.end();
      this.#dispatch();
    }, rest.ms);
    this.#rests.add(timer);
  }

  /** The next `run` tries again to start processes. */
  #giveUp(detail: string, cause?: unknown): void {
    this.#failedStarts = 0;
    this.#commands = undefined;
    const error = new SandboxError(
      `The sandbox cannot start its child processes: ${detail.slice(0, 500)}`,
      {
        fix: 'Check the limits of this machine on processes, memory, open files and temporary files, then run the payloads again.',
        cause,
      },
    );
    for (const call of this.#queues.clear()) call.fail(error);
  }
}

function cancelledError(): SandboxError {
  return new SandboxError('The run was cancelled.', {
    fix: 'Run the payloads again if they are still needed.',
  });
}

function closedError(): SandboxError {
  return new SandboxError('The sandbox is closed.', {
    fix: 'Run the payloads again once the process has restarted.',
  });
}
