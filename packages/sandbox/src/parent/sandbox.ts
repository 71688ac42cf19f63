import { childCommands, type Command } from './confinement.js';
import { SandboxError } from '../protocol/errors.js';
import { GuestProcess, type End } from './guest-process.js';
import { Lanes, type Call, type Taken } from './lanes.js';
import { completeLimits, type SandboxLimits } from '../protocol/limits.js';
import type { Answer, Reply } from '../protocol/protocol.js';
import { DEATHS_TOLERATED, refuseCrash, refuseMemory, refuseOverrun, refuseStarved, type Refusal } from '../protocol/refusals.js';
import type { CheckResult, TransformResult } from '../protocol/result.js';

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
 * 2. A process that is ready takes what has piled up in the next lane, up to a bound. Calls of one process run one after the other. One that is
 *    starting is given nothing: what waited for it could not be run by another one that is ready sooner.
 * 3. A call that runs past its deadline or out of memory ends with its process. It is refused, and the calls that were with it are made
 *    again in another process. They have no effects, so making one twice changes nothing.
 * 4. A process that dies for no known reason is replaced and its calls are made again, the suspicious ones alone.
 * 5. A process that a call has ended is replaced at once, so that nobody's next call has to wait for a start.
 * 6. A function that had a process killed lately works quietly: it gets a share of a processor, and so does what replaces a process.
 * 7. `cancel` takes back what a function has not answered; `close` kills what is left.
 */
export class Sandbox {
  readonly #limits: SandboxLimits;
  readonly #lanes: Lanes;
  readonly #slots = new Set<Slot>();
  /** When functions that rest may run again. */
  readonly #rests = new Set<NodeJS.Timeout>();
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

  /**
   * Takes back every call of the function that has no answer, or only those that no process has: their runs reject with a SandboxError.
   * The key is that of the function.
   */
  cancel(key: string, which: 'all' | 'waiting' = 'all'): void {
    const error = new SandboxError('The run was cancelled.', { fix: 'Run the payloads again when they are wanted.' });
    const calls = this.#lanes.drop(key);
    for (const slot of which === 'all' ? this.#slots : []) {
      const { work } = slot;
      if (work?.key !== key) continue;
      calls.push(...work.calls.splice(work.answered));
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
    for (const timer of this.#rests) clearTimeout(timer);
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

  /** Gives work to processes as long as there are both, and starts what is missing. */
  #dispatch(): void {
    if (this.#closed) return;
    const command = this.#commands?.[0];
    if (!command) {
      void this.#prepare();
      return;
    }
    const started = [...this.#slots].filter((slot) => slot.process.hasStarted);
    const ready = started.filter((slot) => slot.work === undefined);
    // One that had a process killed never gets the last that can take calls, or its neighbours would wait until another has started.
    const sparesOne = this.#limits.processes === 1 || started.length > 1;
    while (ready.length > 0) {
      const taken = this.#lanes.take(sparesOne);
      if (!taken) break;
      // It gets the youngest, for the others have their functions compiled.
      this.#give((taken.suspected ? ready.pop() : ready.shift())!, taken);
    }
    this.#startMissing(command, this.#slots.size - started.length);
  }

  #startMissing(command: Command, starting: number): void {
    const most = this.#limits.processes - this.#slots.size;
    if (most <= 0) return;
    try {
      for (let missing = Math.min(most, this.#lanes.wanted - starting); missing > 0; missing -= 1) this.#open(command);
    } catch (error) {
      queueMicrotask(() => this.#giveUp(String(error), error));
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

  /** Starts a process, quietly or not. Throws as the constructor of `GuestProcess` does. */
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

  /** Puts a process in the place of one that a call has ended; two at least, so that the next such call has not the only one. */
  #refill(): void {
    const command = this.#commands?.[0];
    if (!command || this.#slots.size >= this.#limits.processes) return;
    const left = [...this.#slots].filter((slot) => slot.process.hasStarted).length;
    // The last that is left may be ended before the new one is there.
    if (left === 0) for (const { process } of this.#slots) process.hurry();
    try {
      this.#open(command, left > 0);
      if (this.#slots.size < Math.min(2, this.#limits.processes)) this.#open(command);
    } catch {
      // Nobody waits for it: the next call that needs one tries again, and is told.
    }
  }

  #give(slot: Slot, { key, calls, suspected }: Taken): void {
    this.#lastChunk = (this.#lastChunk % 0x7fffffff) + 1;
    slot.work = { id: this.#lastChunk, key, calls, answered: 0 };
    const first = calls[0]!;
    const kind = first.payload === undefined ? 'check' : 'run';
    const payloads = calls.flatMap((call) => call.payload ?? []);
    slot.process.send({ id: this.#lastChunk, kind, key, text: first.text, payloads }, suspected);
  }

  /** Throws when the reply does not belong to the work of the process: then a function has taken it over. */
  #settle(slot: Slot, reply: Reply): void {
    const { work } = slot;
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
    this.#lanes.answered(work.key);
    this.#lanes.release(work.key, []);
    this.#dispatch();
  }

  #bury(slot: Slot, end: End): void {
    this.#slots.delete(slot);
    if (this.#closed) return;
    const { work } = slot;
    const { refused, again } = work ? this.#blame(work, end) : { refused: [], again: [] };
    if (work) {
      this.#lanes.release(work.key, again);
      this.#refill();
    }
    // Whoever hears of it may cancel the rest.
    for (const { call, answer } of refused) call.settle(answer);
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

  /** Finds the call that has ended a process, when it can be known, and its refusal; the others are to be made again. */
  #blame(work: Work, end: End): { refused: { call: Call; answer: Answer }[]; again: Call[] } {
    const unanswered = work.calls.slice(work.answered);
    if (unanswered.length === 0) return { refused: [], again: [] };
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
      if (!starved) this.#suspect(work.key, end.silentMs);
      refused.push({ call, answer: { ...given, ...(starved ? { starved } : {}), logs: [], durationMs: end.silentMs } });
      return false;
    });
    return { refused, again };
  }

  #suspect(key: string, tookMs: number): void {
    const restMs = this.#lanes.suspect(key, tookMs);
    if (restMs === 0) return;
    const timer = setTimeout(() => {
      this.#rests.delete(timer);
      this.#lanes.rested(key);
      this.#dispatch();
    }, restMs);
    this.#rests.add(timer);
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
