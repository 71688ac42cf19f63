import { childCommands, type Command } from './confinement.js';
import { SandboxError } from './errors.js';
import { GuestProcess, type End } from './guest-process.js';
import { Lanes, type Call } from './lanes.js';
import { completeLimits, type SandboxLimits } from './limits.js';
import type { Answer, Reply } from './protocol.js';
import { DEATHS_TOLERATED, refuseCrash, refuseMemory, refuseOverrun, type Refusal } from './refusals.js';
import type { CheckResult, TransformResult } from './result.js';

/** The text of a function, and a key that changes whenever the text changes, such as the id of its source with a version. */
export interface TransformFunction {
  key: string;
  text: string;
}

/** Processes that may die before their first call, one after the other, until the sandbox says that it cannot work here. */
const FAILED_STARTS_TOLERATED = 3;

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
}

/**
 * Runs functions that nobody trusts, in a few child processes.
 *
 * 1. `run` queues its payloads in the lane of their function. Processes start when they are first needed and stay.
 * 2. An idle process takes what has piled up in the next lane, up to a bound. Calls of one process run one after the other.
 * 3. A call that runs past its deadline or out of memory ends with its process. It is refused, and the calls that were with it are made
 *    again in another process. They have no effects, so making one twice changes nothing.
 * 4. A process that dies for no known reason is replaced and its calls are made again, the suspicious ones alone.
 * 5. `close` kills what is left.
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

  /** Throws a RangeError for a limit that cannot work. Starts nothing yet. */
  constructor(limits: Partial<SandboxLimits> = {}) {
    this.#limits = completeLimits(limits);
    this.#lanes = new Lanes(this.#limits.processes);
  }

  /**
   * Runs the function on each payload, a JSON text, and returns what became of each, in the same order. Never rejects for what a
   * function does. Rejects with a SandboxError when no process can be started or the sandbox is closed: then nothing is known about the
   * payloads, and they may be tried again.
   */
  async run(fn: TransformFunction, payloads: readonly string[]): Promise<TransformResult[]> {
    if (payloads.length === 0) return [];
    const answers = await this.#submit(fn, payloads);
    return answers.map((answer) => {
      if (answer.kind === 'compiled') throw new Error('A run was answered like a check.');
      return answer;
    });
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
    const error = closedError();
    const unanswered = [...this.#slots].flatMap((slot) => slot.work?.calls.slice(slot.work.answered) ?? []);
    for (const call of [...unanswered, ...this.#lanes.clear()]) call.fail(error);
    await Promise.all([...this.#slots].map((slot) => slot.process.kill()));
  }

  #submit(fn: TransformFunction, payloads: readonly (string | undefined)[]): Promise<Answer[]> {
    if (this.#closed) return Promise.reject(closedError());
    return new Promise((resolve, reject) => {
      const answers = new Array<Answer>(payloads.length);
      let missing = payloads.length;
      const calls = payloads.map((payload, index): Call => {
        const settle = (answer: Answer): void => {
          answers[index] = answer;
          missing -= 1;
          if (missing === 0) resolve(answers);
        };
        return { text: fn.text, payload, deaths: 0, settle, fail: reject };
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
      const idle = [...this.#slots].find((slot) => slot.work === undefined);
      if (!idle && this.#slots.size >= this.#limits.processes) return;
      const taken = this.#lanes.take();
      if (!taken) return;
      const slot = idle ?? this.#start(command);
      if (slot) this.#give(slot, taken);
      else this.#lanes.release(taken.key, taken.calls);
      if (!slot) return;
    }
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
      const slot: Slot = {
        command,
        work: undefined,
        process: new GuestProcess(command, this.#limits, {
          onReply: (reply) => this.#settle(slot, reply),
          onEnd: (end) => this.#bury(slot, end),
        }),
      };
      this.#slots.add(slot);
      return slot;
    } catch (error) {
      queueMicrotask(() => this.#giveUp(String(error), error));
      return undefined;
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
    if (work) this.#lanes.release(work.key, this.#blame(work, end));
    if (end.cause === 'unstarted') this.#countFailedStart(slot, end);
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

  /** Refuses the call that has ended a process, when it is known. Returns the calls that are to be made again. */
  #blame(work: Work, end: End): Call[] {
    const unanswered = work.calls.slice(work.answered);
    if (end.cause === 'unstarted') return unanswered;
    let offender = end.call === undefined ? undefined : work.calls[end.call];
    // A payload that is too large even to be read ends a process between calls.
    if (end.cause === 'memory' && unanswered.length === 1) offender ??= unanswered[0];
    let refusal: Refusal | undefined;
    if (end.cause === 'overran') refusal = refuseOverrun(this.#limits.deadlineMs);
    else if (end.cause === 'memory' && offender) refusal = refuseMemory(this.#limits.memoryMb);
    else for (const call of offender ? [offender] : unanswered) call.deaths += 1;
    return unanswered.filter((call) => {
      const given = call === offender && refusal ? refusal : call.deaths >= DEATHS_TOLERATED ? refuseCrash() : undefined;
      if (!given) return true;
      this.#lanes.suspect(work.key);
      call.settle({ ...given, logs: [], durationMs: end.silentMs });
      return false;
    });
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

function closedError(): SandboxError {
  return new SandboxError('The sandbox is closed.', { fix: 'Run the payloads again when the process is up again.' });
}
