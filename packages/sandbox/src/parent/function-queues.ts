import type { Answer } from '../protocol/protocol.js';

/** One payload of a function, or the check of a function, that waits for its answer. */
export interface Call {
  text: string;
  /** Undefined for a check. */
  payload: string | undefined;
  /** Processes that died for an unknown reason while they had this call. */
  deaths: number;
  settle(answer: Answer): void;
  fail(error: Error): void;
}

/** Calls for one process, all of one function. */
export interface Taken {
  key: string;
  calls: Call[];
  /** The function is new or suspected: its call may hold the process until the deadline. */
  apart: boolean;
}

interface FunctionQueue {
  waiting: Call[];
  /** Processes that run calls of this queue. */
  running: number;
  /** A process was killed because of it lately. */
  suspectUntil: number;
  /** It overran more than once in a row and does not run until `rested`. */
  resting: boolean;
  /** Consecutive calls that ended their process. */
  overruns: number;
  /** Its call was interrupted so that a new function could be tried; it waits until no new one does. */
  interrupted: boolean;
}

/** About a millisecond of a quick function, which fits a processor's cache: chunks of 256 calls of 1 KB took up to a fifth longer per call. */
const MAX_CALLS = 64;
const MAX_CHARS = 128 * 1024;

/** How long a function stays suspected after its process was killed. */
const SUSPICION_MS = 60_000;

/** A function that keeps overrunning rests for twice the time that the call and the replacement of its process took. */
const RESTS = 2;
const REPLACING_MS = 150;
const MAX_REST_MS = 60_000;

/** Functions that are remembered as tried; one that is forgotten is tried again. */
const MAX_TRIED = 10_000;

/**
 * Decides which calls run next. Each function has a queue, and queues take turns. No function has all processes, so that the others always
 * find one that is not stuck in its loop. Functions that have not answered a call yet, and suspected ones, run apart: one call at a time, all in
 * the same process, new ones first.
 */
export class FunctionQueues {
  readonly #processes: number;
  readonly #queues = new Map<string, FunctionQueue>();
  /** Functions that have answered a call since they last overran, the oldest first. */
  readonly #tried = new Set<string>();

  constructor(processes: number) {
    this.#processes = processes;
  }

  add(key: string, calls: readonly Call[]): void {
    const queue = this.#queue(key);
    for (const call of calls) queue.waiting.push(call);
  }

  /** Ends a `take`. Unanswered calls return to the front of their queue. */
  release(key: string, unanswered: readonly Call[]): void {
    const queue = this.#queue(key);
    queue.running -= 1;
    if (unanswered.length > 0) queue.waiting = [...unanswered, ...queue.waiting];
    if (queue.waiting.length === 0 && queue.running === 0 && queue.suspectUntil <= performance.now()) this.#queues.delete(key);
  }

  /**
   * Suspects a function whose call ended its process after `tookMs`. From the second such call in a row it rests, so that a function that only
   * overruns costs its neighbours at most a quarter of a processor. Returns the milliseconds after which the caller calls `rested`.
   */
  suspect(key: string, tookMs: number): number {
    const queue = this.#queue(key);
    queue.overruns += 1;
    const restMs = queue.overruns === 1 ? 0 : Math.min(MAX_REST_MS, RESTS * (tookMs + REPLACING_MS));
    queue.resting = restMs > 0;
    queue.suspectUntil = performance.now() + restMs + SUSPICION_MS;
    this.#tried.delete(key);
    return restMs;
  }

  rested(key: string): void {
    this.#queue(key).resting = false;
  }

  /** A function has answered its calls: it may share a process, once nothing is held against it. */
  answered(key: string): void {
    const queue = this.#queue(key);
    queue.overruns = 0;
    queue.interrupted = false;
    this.#tried.add(key);
    if (this.#tried.size > MAX_TRIED) this.#tried.delete(this.#tried.values().next().value!);
  }

  /** The running call of a function apart was ended for a new one. */
  interrupted(key: string): void {
    this.#queue(key).interrupted = true;
  }

  /** No function has answered a call yet. */
  get areAllNew(): boolean {
    return this.#tried.size === 0;
  }

  /** A function waits for its first call. */
  get newWaits(): boolean {
    const now = performance.now();
    for (const [key, queue] of this.#queues)
      if (queue.waiting.length > 0 && queue.running === 0 && this.#isNew(key, queue, now)) return true;
    return false;
  }

  /** How many idle processes the waiting calls could use. */
  get wanted(): number {
    const now = performance.now();
    let [wanted, apart] = [0, 0];
    for (const [key, queue] of this.#queues) {
      const { waiting, running, resting } = queue;
      if (!this.#isApart(key, queue, now))
        wanted += Math.min(Math.max(1, this.#processes - 1) - running, Math.ceil(waiting.length / MAX_CALLS));
      else if (waiting.length > 0 && !resting) apart = 1;
    }
    return wanted + (this.#isConfined(now) ? 0 : apart);
  }

  /** The next calls for an idle process, all of one function, apart only if `apartToo`; undefined if none may run now. `release` ends it. */
  take(apartToo = true): Taken | undefined {
    const now = performance.now();
    const isFree = apartToo && !this.#isConfined(now);
    const { newWaits } = this;
    for (const [key, queue] of this.#queues) {
      if (queue.waiting.length === 0) {
        if (queue.running === 0 && queue.suspectUntil <= now) this.#queues.delete(key);
        continue;
      }
      const apart = this.#isApart(key, queue, now);
      const most = apart ? 1 : Math.max(1, this.#processes - 1);
      if (queue.running >= most) continue;
      if (apart && (!isFree || queue.resting || (newWaits && !this.#isNew(key, queue, now)))) continue;
      queue.running += 1;
      this.#queues.delete(key);
      this.#queues.set(key, queue);
      // One by one: a good call is answered before the next one may end the process.
      return { key, calls: cut(queue, apart ? 1 : MAX_CALLS), apart };
    }
    return undefined;
  }

  /** Removes and returns the waiting calls of one function. */
  drop(key: string): Call[] {
    return this.#queues.get(key)?.waiting.splice(0) ?? [];
  }

  /** Removes and returns all waiting calls. */
  clear(): Call[] {
    return [...this.#queues.values()].flatMap((queue) => queue.waiting.splice(0));
  }

  /** Whether a function apart is running: they share one process. */
  #isConfined(now: number): boolean {
    return [...this.#queues].some(([key, queue]) => queue.running > 0 && this.#isApart(key, queue, now));
  }

  #isApart(key: string, { suspectUntil }: FunctionQueue, now: number): boolean {
    return suspectUntil > now || !this.#tried.has(key);
  }

  #isNew(key: string, { suspectUntil, interrupted }: FunctionQueue, now: number): boolean {
    return suspectUntil <= now && !interrupted && !this.#tried.has(key);
  }

  #queue(key: string): FunctionQueue {
    let queue = this.#queues.get(key);
    if (!queue) {
      queue = { waiting: [], running: 0, suspectUntil: 0, resting: false, overruns: 0, interrupted: false };
      this.#queues.set(key, queue);
    }
    return queue;
  }
}

/** Takes calls from the front of a queue that may share a chunk. */
function cut(queue: FunctionQueue, most: number): Call[] {
  const { waiting } = queue;
  const first = waiting[0]!;
  let count = 1;
  // A check has no payload. A call whose process died for an unknown reason runs alone, to find out whether it is the cause.
  if (first.payload !== undefined && first.deaths === 0) {
    let chars = first.payload.length;
    while (count < most) {
      const next = waiting[count];
      if (next?.payload === undefined || next.deaths > 0 || next.text !== first.text) break;
      chars += next.payload.length;
      if (chars > MAX_CHARS) break;
      count += 1;
    }
  }
  return waiting.splice(0, count);
}
