import { childCommands, type Command } from './confinement.js';
import { SandboxError } from './errors.js';
import { GuestProcess, type End } from './guest-process.js';
import { Lanes, type Call } from './lanes.js';
import { completeLimits, type SandboxLimits } from './limits.js';
import type { Answer, Reply } from './protocol.js';
import { DEATHS_TOLERATED, refuseCrash, refuseMemory, refuseOverrun, refuseStarved, type Refusal } from './refusals.js';
import type { CheckResult, TransformResult } from './result.js';

/** The text of a function, and a key that changes whenever the text changes, such as the id of its source with a version. */
export interface TransformFunction {
  key: string;
  text: string;
}

/** Processes that may die before their first call, one after the other, until the sandbox says that it cannot work here. */
const FAILED_STARTS_TOLERATED = 3;

/** A start takes about 100 ms. */
const LOOK_AGAIN_MS = 10;

interface Work {
  /** The number of the chunk. */
  id: number;
  key: string;
  calls: Call[];
  /** Answers come in order. */
  answered: number;
}

interface Slot {
  command: Command;
  process: GuestProcess;
  work: Work | undefined;
  /** We have killed it because nobody wants its answers any more. */
  cancelled: boolean;
}

/**
 * Runs functions that nobody trusts, in a few child processes.
 *
 * 1. `run` queues its payloads in the lane of their function. Processes start when they are first needed and stay.
 * 2. An idle process takes what has piled up in the next lane, up to a bound. Calls of one process run one after the other.
 * 3. A call that runs past its deadline or out of memory ends with its process. It is refused, and the calls that were with it are made
 *    again in another process. They have no effects, so making one twice changes nothing.
 * 4. A process that dies for no known reason is replaced and its calls are made again, the suspicious ones alone.
 * 5. A process that a call has ended is replaced at once, so that nobody's next call has to wait for a start.
 * 6. `cancel` takes back what a function has not answered; `close` kills what is left.
 */
export class Sandbox {
  readonly #limits: SandboxLimits;
  readonly #lanes: Lanes;
  readonly #slots = new Set<Slot>();
  /** How a process can be started, the strictest first; undefined until somebody has looked. What fails at first is removed. */
  #commands: Command[] | undefined;
  #preparing = false;
  #failedStarts = 0;
  #worked = false;
  #lastChunk = 0;
  #closed = false;
  #again: NodeJS.Timeout | undefined;

  /** Throws a RangeError for a limit that cannot work. Starts nothing yet. */
  constructor(limits: Partial<SandboxLimits> = {}) {
    this.#limits = completeLimits(limits);
    this.#lanes = new Lanes(this.#limits.processes);
  }

  /**
   * Runs the function on each payload, a JSON text, and returns what became of each, in the same order. Never rejects for what a
   * function does. Rejects with a SandboxError when no process can be started, the run is cancelled or the sandbox is closed: then nothing
   * is known about the payloads that have no result yet, and they may be tried again.
   *
   * @param onResult is given each result as soon as it is there, with the place of its payload, so that one that overruns keeps nobody
   * waiting. It must not throw
   */
  async run(
    fn: TransformFunction,
    payloads: readonly string[],
    onResult?: (index: number, result: TransformResult) => void,
  ): Promise<TransformResult[]> {
    if (payloads.length === 0) return [];
    return (await this.#submit(fn, payloads, (index, answer) => onResult?.(index, resultOf(answer)))).map(resultOf);
  }

  /** Takes back every call of the function that has no answer: their runs reject with a SandboxError. The key is that of the function. */
  cancel(key: string): void {
    const error = new SandboxError('The run was cancelled.', { fix: 'Run the payloads again when they are wanted.' });
    const calls = this.#lanes.drop(key);
    for (const slot of this.#slots) {
      const { work } = slot;
      if (work?.key !== key) continue;
      calls.push(...work.calls.splice(work.answered));
      slot.cancelled = true;
      void slot.process.kill();
    }
    for (const call of calls) call.fail(error);
  }

  /**
   * Compiles the function and runs its text from the top, without calling `transform`. Tells whether it could be called. Rejects as
   * `run` does.
   */
  async check(fn: TransformFunction): Promise<CheckResult> {
    const [answer] = await this.#submit(fn, [undefined]);
    return answer?.kind === 'refused' ? { ok: false, code: answer.code, reason: answer.reason } : { ok: true };
  }

  /** How the processes are started on this machine; undefined until a run has found that out. */
  get command(): Readonly<Command> | undefined {
    return this.#commands?.[0];
  }

  /** How many processes there are now: they start when they are first needed. */
  get processes(): number {
    return this.#slots.size;
  }

  /** Kills the processes and rejects what is not answered. Resolves when they are gone. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#again);
    const error = closedError();
    const unanswered = [...this.#slots].flatMap((slot) => slot.work?.calls.slice(slot.work.answered) ?? []);
    for (const call of [...unanswered, ...this.#lanes.clear()]) call.fail(error);
    await Promise.all([...this.#slots].map((slot) => slot.process.kill()));
  }

  #submit(
    fn: TransformFunction,
    payloads: readonly (string | undefined)[],
    onAnswer?: (index: number, answer: Answer) => void,
  ): Promise<Answer[]> {
    if (this.#closed) return Promise.reject(closedError());
    return new Promise((resolve, reject) => {
      const answers = new Array<Answer>(payloads.length);
      let missing = payloads.length;
      // What is still running when one of the calls has failed is not wanted any more.
      let failed = false;
      const fail = (error: Error): void => {
        failed = true;
        reject(error);
      };
      const calls = payloads.map((payload, index): Call => {
        const settle = (answer: Answer): void => {
          if (failed) return;
          answers[index] = answer;
          missing -= 1;
          onAnswer?.(index, answer);
          if (missing === 0) resolve(answers);
        };
        return { text: fn.text, payload, deaths: 0, settle, fail };
      });
      this.#lanes.add(fn.key, calls);
      this.#dispatch();
    });
  }

  /** Gives work to processes as long as there are both. */
  #dispatch(): void {
    if (this.#closed) return;
    const command = this.#commands?.[0];
    if (!command) {
      void this.#prepare();
      return;
    }
    for (;;) {
      const idle = [...this.#slots].filter((slot) => slot.work === undefined);
      if (idle.length === 0 && this.#slots.size >= this.#limits.processes) return;
      const warm = idle.find((slot) => slot.process.hasStarted);
      const fresh = idle.find((slot) => !slot.process.hasStarted);
      const taken = this.#lanes.take(this.#sparesOne(fresh ?? warm));
      if (!taken) return;
      const slot = (taken.suspected ? (fresh ?? warm) : (warm ?? fresh)) ?? this.#start(command);
      if (slot) this.#give(slot, taken);
      else this.#lanes.release(taken.key, taken.calls);
      if (!slot) return;
    }
  }

  /**
   * Whether a function that had a process killed may have this one: not the last that is ready, or its neighbours would wait until another has
   * started. Looks again soon when it may not.
   */
  #sparesOne(slot: Slot | undefined): boolean {
    if (this.#limits.processes === 1 || this.#slots.size < 2) return true;
    if ([...this.#slots].some((other) => other !== slot && other.process.hasStarted)) return true;
    if (this.#lanes.waiting)
      this.#again ??= setTimeout(() => {
        this.#again = undefined;
        this.#dispatch();
      }, LOOK_AGAIN_MS);
    return false;
  }

  /** Finds out, once, how to start a process on this machine. */
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

  #start(command: Command): Slot | undefined {
    try {
      return this.#open(command);
    } catch (error) {
      queueMicrotask(() => this.#giveUp(String(error), error));
      return undefined;
    }
  }

  /** Starts a process. Throws as the constructor of `GuestProcess` does. */
  #open(command: Command): Slot {
    const slot: Slot = {
      command,
      work: undefined,
      cancelled: false,
      process: new GuestProcess(command, this.#limits, {
        onReply: (reply) => this.#settle(slot, reply),
        onEnd: (end) => this.#bury(slot, end),
      }),
    };
    this.#slots.add(slot);
    return slot;
  }

  /** Puts a process in the place of one that a call has ended; two at least, so that the next such call has not the only one. */
  #refill(): void {
    const command = this.#commands?.[0];
    if (!command || this.#slots.size >= this.#limits.processes) return;
    try {
      this.#open(command);
      if (this.#slots.size < Math.min(2, this.#limits.processes)) this.#open(command);
    } catch {
      // Nobody waits for it: the next call that needs one tries again, and is told.
    }
  }

  #give(slot: Slot, { key, calls }: { key: string; calls: Call[] }): void {
    this.#lastChunk = (this.#lastChunk % 0x7fffffff) + 1;
    slot.work = { id: this.#lastChunk, key, calls, answered: 0 };
    const first = calls[0]!;
    const kind = first.payload === undefined ? 'check' : 'run';
    const payloads = calls.flatMap((call) => call.payload ?? []);
    slot.process.send({ id: this.#lastChunk, kind, key, text: first.text, payloads });
  }

  /** Throws when the reply does not belong to the work of the process: then a function has taken it over. */
  #settle(slot: Slot, reply: Reply): void {
    const { work } = slot;
    this.#failedStarts = 0;
    this.#worked = true;
    for (const [offset, answer] of reply.answers.entries()) {
      const call = work?.calls[work.answered];
      const asked = reply.chunk === work?.id && reply.first + offset === work.answered;
      if (!call || !asked || (answer.kind === 'compiled' && call.payload !== undefined)) {
        throw new Error('The child process answered what it was not asked.');
      }
      work.answered += 1;
      call.settle(answer);
    }
    if (!work) return;
    if (work.answered < work.calls.length) return;
    slot.work = undefined;
    slot.process.rest();
    this.#lanes.release(work.key, []);
    this.#dispatch();
  }

  #bury(slot: Slot, end: End): void {
    this.#slots.delete(slot);
    if (this.#closed) return;
    const { work } = slot;
    const { refused, again } = work ? this.#blame(work, end) : { refused: [], again: [] };
    if (work) this.#lanes.release(work.key, again);
    if (work && (end.cause !== 'unstarted' || slot.cancelled)) this.#refill();
    // Whoever hears of it may cancel the rest.
    for (const { call, answer } of refused) call.settle(answer);
    if (end.cause === 'unstarted' && !slot.cancelled) this.#countFailedStart(slot, end);
    this.#dispatch();
  }

  #countFailedStart(slot: Slot, end: End): void {
    if (!this.#worked && !end.killed && this.#commands && this.#commands.length > 1) {
      if (this.#commands[0] === slot.command) this.#commands.shift();
      return;
    }
    this.#failedStarts += 1;
    if (this.#failedStarts >= FAILED_STARTS_TOLERATED) this.#giveUp(end.lastWords || 'they die without a word');
  }

  /** Finds the call that has ended a process, when it can be known, and its refusal; the others are to be made again. */
  #blame(work: Work, end: End): { refused: { call: Call; answer: Answer }[]; again: Call[] } {
    const unanswered = work.calls.slice(work.answered);
    if (end.cause === 'unstarted' || unanswered.length === 0) return { refused: [], again: unanswered };
    let offender = end.call === undefined ? undefined : work.calls[end.call];
    // A payload that is too large even to be read ends a process between calls.
    if (end.cause === 'memory' && unanswered.length === 1) offender ??= unanswered[0];
    let refusal: Refusal | undefined;
    if (end.starvedMs !== undefined) refusal = refuseStarved(this.#limits.deadlineMs, end.starvedMs);
    else if (end.cause === 'overran') refusal = refuseOverrun(this.#limits.deadlineMs);
    else if (end.cause === 'memory' && offender) refusal = refuseMemory(this.#limits.memoryMb);
    else for (const call of offender ? [offender] : unanswered) call.deaths += 1;
    const refused: { call: Call; answer: Answer }[] = [];
    const again = unanswered.filter((call) => {
      const given = call === offender && refusal ? refusal : call.deaths >= DEATHS_TOLERATED ? refuseCrash() : undefined;
      if (!given) return true;
      const starved = end.starvedMs !== undefined;
      if (!starved) this.#lanes.suspect(work.key);
      refused.push({ call, answer: { ...given, ...(starved ? { starved } : {}), logs: [], durationMs: end.silentMs } });
      return false;
    });
    return { refused, again };
  }

  /** Rejects everything that waits. The next `run` tries anew. */
  #giveUp(detail: string, cause?: unknown): void {
    this.#failedStarts = 0;
    this.#commands = undefined;
    const error = new SandboxError(`The sandbox cannot start its child processes: ${detail.slice(0, 500)}`, {
      fix: 'Look at the limits of this machine on processes, memory, open files and temporary files; the payloads can be run again afterwards.',
      cause,
    });
    for (const call of this.#lanes.clear()) call.fail(error);
  }
}

function resultOf(answer: Answer): TransformResult {
  if (answer.kind === 'compiled') throw new Error('A run was answered like a check.');
  return answer;
}

function closedError(): SandboxError {
  return new SandboxError('The sandbox is closed.', { fix: 'Run the payloads again when the process is up again.' });
}
