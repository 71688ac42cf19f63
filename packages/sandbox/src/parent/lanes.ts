import type { Answer } from '../protocol/protocol.js';

/** One payload of a function, or the check of one, that waits for its answer. */
export interface Call {
  text: string;
  /** Undefined for a check. */
  payload: string | undefined;
  /** Processes that have died while this call was with them, for a reason that nobody knows. */
  deaths: number;
  settle(answer: Answer): void;
  fail(error: Error): void;
}

/** What a process is to work at, all of one function. */
export interface Taken {
  key: string;
  calls: Call[];
  /** The function had a process killed lately. */
  suspected: boolean;
}

interface Lane {
  waiting: Call[];
  /** Processes that work for this lane now. */
  running: number;
  suspectUntil: number;
  /** It overran more than once in a row, and nothing of it is run until `rested`. */
  resting: boolean;
  /** Calls in a row that ended their process. */
  overruns: number;
}

/**
 * A chunk is about a millisecond of work of a quick function, so that lanes take turns often, and little enough to stay in a
 * processor's cache: chunks of 256 calls with 1 KB each took up to a fifth more time per call than those of 64.
 */
const MAX_CALLS = 64;
const MAX_CHARS = 128 * 1024;

/** A function that had a process killed is confined for this time. */
const SUSPICION_MS = 60_000;

/** A function that does nothing but overrun rests for twice the time that it took, with the start of the process that replaces the one it ended. */
const RESTS = 2;
const REPLACING_MS = 150;
const MAX_REST_MS = 60_000;

/**
 * Who is next. Each function has a lane, and lanes take turns. A function never has all processes, so another one always finds a
 * process that is not looping in the first; and those that had a process killed lately have one process between them all.
 */
export class Lanes {
  readonly #processes: number;
  readonly #lanes = new Map<string, Lane>();

  constructor(processes: number) {
    this.#processes = processes;
  }

  add(key: string, calls: readonly Call[]): void {
    const lane = this.#lane(key);
    for (const call of calls) lane.waiting.push(call);
  }

  /** Gives back what `take` gave, with the calls that are not answered; they come first again. */
  release(key: string, unanswered: readonly Call[]): void {
    const lane = this.#lane(key);
    lane.running -= 1;
    if (unanswered.length > 0) lane.waiting = [...unanswered, ...lane.waiting];
    if (lane.waiting.length === 0 && lane.running === 0 && lane.suspectUntil <= performance.now()) this.#lanes.delete(key);
  }

  /**
   * A call of the function has ended its process. The function is confined from now on; and when this was not the first such call in a row it rests, so
   * that a function which does nothing else costs its neighbours a quarter of a processor.
   *
   * @param tookMs milliseconds that the call had
   * @returns milliseconds of its rest, which `rested` is to end
   */
  suspect(key: string, tookMs: number): number {
    const lane = this.#lane(key);
    lane.overruns += 1;
    const restMs = lane.overruns === 1 ? 0 : Math.min(MAX_REST_MS, RESTS * (tookMs + REPLACING_MS));
    lane.resting = restMs > 0;
    lane.suspectUntil = performance.now() + restMs + SUSPICION_MS;
    return restMs;
  }

  /** The rest of the function is over. */
  rested(key: string): void {
    this.#lane(key).resting = false;
  }

  /** A call of the function was answered. */
  answered(key: string): void {
    this.#lane(key).overruns = 0;
  }

  /** How many processes could work at what waits, if they were idle. */
  get wanted(): number {
    const now = performance.now();
    let [wanted, suspected] = [0, 0];
    for (const { waiting, running, suspectUntil, resting } of this.#lanes.values()) {
      if (suspectUntil <= now) wanted += Math.min(Math.max(1, this.#processes - 1) - running, Math.ceil(waiting.length / MAX_CALLS));
      else if (waiting.length > 0 && !resting) suspected = 1;
    }
    return wanted + (this.#isConfined(now) ? 0 : suspected);
  }

  /**
   * The next calls for an idle process, all of one function; undefined when nothing may run now. To be given back with `release`.
   *
   * @param suspects false: none of a function that had a process killed lately
   */
  take(suspects = true): Taken | undefined {
    const now = performance.now();
    const confined = this.#isConfined(now);
    for (const [key, lane] of this.#lanes) {
      if (lane.waiting.length === 0) {
        if (lane.running === 0 && lane.suspectUntil <= now) this.#lanes.delete(key);
        continue;
      }
      const suspected = lane.suspectUntil > now;
      const most = suspected ? 1 : Math.max(1, this.#processes - 1);
      if (lane.running >= most || (suspected && (confined || !suspects || lane.resting))) continue;
      lane.running += 1;
      this.#lanes.delete(key);
      this.#lanes.set(key, lane);
      // One by one: what is good is answered before the next call ends its process too.
      return { key, calls: cut(lane, suspected ? 1 : MAX_CALLS), suspected };
    }
    return undefined;
  }

  /** Takes what waits of one function, for good. */
  drop(key: string): Call[] {
    return this.#lanes.get(key)?.waiting.splice(0) ?? [];
  }

  /** Takes everything that waits, for good. */
  clear(): Call[] {
    return [...this.#lanes.values()].flatMap((lane) => lane.waiting.splice(0));
  }

  /** Whether a function that had a process killed lately is at work: such functions have one process between them all. */
  #isConfined(now: number): boolean {
    return [...this.#lanes.values()].some((lane) => lane.running > 0 && lane.suspectUntil > now);
  }

  #lane(key: string): Lane {
    let lane = this.#lanes.get(key);
    if (!lane) {
      lane = { waiting: [], running: 0, suspectUntil: 0, resting: false, overruns: 0 };
      this.#lanes.set(key, lane);
    }
    return lane;
  }
}

/** Takes calls from the front of a lane that may go to a process together. */
function cut(lane: Lane, most: number): Call[] {
  const { waiting } = lane;
  const first = waiting[0]!;
  let count = 1;
  // A check has no payload, and a call that has seen a process die without a reason goes alone, to find out whether it is the reason.
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
