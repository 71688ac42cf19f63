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
  /** A process was killed because of the function lately. */
  suspected: boolean;
}

interface FunctionQueue {
  waiting: Call[];
  /** Processes that run calls of this queue. */
  running: number;
  suspectUntil: number;
  /** It overran more than once in a row and does not run until `rested`. */
  resting: boolean;
  /** Consecutive calls that ended their process. */
  overruns: number;
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

/**
 * Decides which calls run next. Each function has a queue, and queues take turns. No function has all processes, so that the others always
 * find one that is not stuck in its loop; all suspected functions share one process.
 */
export class FunctionQueues {
  readonly #processes: number;
  readonly #queues = new Map<string, FunctionQueue>();

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
    return restMs;
  }

  rested(key: string): void {
    this.#queue(key).resting = false;
  }

  answered(key: string): void {
    this.#queue(key).overruns = 0;
  }

  /** How many idle processes the waiting calls could use. */
  get wanted(): number {
    const now = performance.now();
    let [wanted, suspected] = [0, 0];
    for (const { waiting, running, suspectUntil, resting } of this.#queues.values()) {
      if (suspectUntil <= now) wanted += Math.min(Math.max(1, this.#processes - 1) - running, Math.ceil(waiting.length / MAX_CALLS));
      else if (waiting.length > 0 && !resting) suspected = 1;
    }
    return wanted + (this.#isConfined(now) ? 0 : suspected);
  }

  /** The next calls for an idle process, all of one function, suspected only if `suspects`; undefined if none may run now. `release` ends it. */
  take(suspects = true): Taken | undefined {
    const now = performance.now();
    const confined = this.#isConfined(now);
    for (const [key, queue] of this.#queues) {
      if (queue.waiting.length === 0) {
        if (queue.running === 0 && queue.suspectUntil <= now) this.#queues.delete(key);
        continue;
      }
      const suspected = queue.suspectUntil > now;
      const most = suspected ? 1 : Math.max(1, this.#processes - 1);
      if (queue.running >= most || (suspected && (confined || !suspects || queue.resting))) continue;
      queue.running += 1;
      this.#queues.delete(key);
      this.#queues.set(key, queue);
      // One by one: a good call is answered before the next one may end the process.
      return { key, calls: cut(queue, suspected ? 1 : MAX_CALLS), suspected };
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

  /** Whether a suspected function is running: they share one process. */
  #isConfined(now: number): boolean {
    return [...this.#queues.values()].some((queue) => queue.running > 0 && queue.suspectUntil > now);
  }

  #queue(key: string): FunctionQueue {
    let queue = this.#queues.get(key);
    if (!queue) {
      queue = { waiting: [], running: 0, suspectUntil: 0, resting: false, overruns: 0 };
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
