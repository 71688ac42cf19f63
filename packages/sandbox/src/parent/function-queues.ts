import type { Payload } from '../protocol/protocol.js';
import type { TransformResult } from '../protocol/result.js';

export interface QueuedCall {
  text: string;
  payload: Payload;
  /** JSON; undefined unless the function takes it. */
  message?: string | undefined;
  /** Processes that died for an unknown reason during this call. */
  deaths: number;
  settle(result: TransformResult): void;
  fail(error: Error): void;
}

export interface Taken {
  key: string;
  calls: QueuedCall[];
  /** The function is new or suspected, so a call may occupy the process until the deadline. */
  apart: boolean;
}

interface FunctionQueue {
  readonly key: string;
  readonly project: ProjectQueues;
  waiting: QueuedCall[];
  /** Processes running calls of this queue. */
  running: number;
  /** Suspicion begins when a call of the function ends a process. */
  suspectUntil: number;
  /** A call was interrupted for a new function, so the queue waits for all new functions. */
  interrupted: boolean;
}

interface ProjectQueues {
  readonly name: string;
  readonly queues: Map<string, FunctionQueue>;
  running: number;
  /** Suspicion begins when a function of the project ends a process. */
  suspectUntil: number;
  /** Active rests, during which the project's new and suspected functions do not run. */
  rests: number;
}

/** New and suspected functions of the project do not run. The caller ends the rest after `ms`. */
export interface ProjectRest {
  readonly ms: number;
  end(): void;
}

/**
 * Calls in a chunk, and characters in their payloads. A fast function takes about a millisecond for
 * them, and they fit into a CPU cache: chunks of 256 calls of 1 KB took up to a fifth longer per
 * call.
 */
const MAX_CALLS = 64;
const MAX_CHARS = 128 * 1024;
/**
 * The target duration of a chunk. Slow calls get smaller chunks, because other functions would wait
 * for all 64 calls.
 */
const TURN_MS = 50;

/** A function and its project are suspected after a call ended its process. */
const SUSPICION_MS = 60_000;
/** Projects share the processes for this long after calls from two different projects. */
const SHARING_MS = 60_000;

/**
 * A project that keeps overrunning rests for this multiple of the time that the call and the start
 * of a new process took.
 */
const RESTS = 2;
const REPLACING_MS = 150;
const MAX_REST_MS = 60_000;

/** Functions remembered as tried. A forgotten one is tried again. */
const MAX_TRIED = 10_000;

/**
 * Projects take turns, as do the functions of a project. No function occupies all processes, nor
 * does a project that is suspected or shares them, so other functions always find a process that is
 * not stuck in a loop. New and suspected functions run apart: one call at a time, all in the same
 * process, new functions first.
 */
export class FunctionQueues {
  readonly #processes: number;
  /** Processes for a function, and for a project that shares them. */
  readonly #share: number;
  readonly #queues = new Map<string, FunctionQueue>();
  readonly #projects = new Map<string, ProjectQueues>();
  /** Least recently answered first, with the number of calls per turn. */
  readonly #tried = new Map<string, number>();
  #lastProject: string | undefined;
  #sharedUntil = 0;

  constructor(processes: number) {
    this.#processes = processes;
    this.#share = Math.max(1, processes - 1);
  }

  /** @param project always the same for a function; by default, the function is its own project */
  add(key: string, calls: readonly QueuedCall[], project = key): void {
    const queue = this.#queue(key, project);
    if (this.#lastProject !== undefined && this.#lastProject !== project)
      this.#sharedUntil = performance.now() + SHARING_MS;
    this.#lastProject = project;
    for (const call of calls) queue.waiting.push(call);
  }

  /** Ends the run of calls from `take`. Unanswered calls return to the front of their queue. */
  release(key: string, unanswered: readonly QueuedCall[]): void {
    const queue = this.#queue(key);
    queue.running -= 1;
    queue.project.running -= 1;
    if (unanswered.length > 0) queue.waiting = [...unanswered, ...queue.waiting];
    else this.#forgetIdle(queue, performance.now());
  }

  /**
   * A call ended its process after `tookMs`. From the second such call within a minute, the project
   * rests, so that overrunning functions cost others at most a quarter of a processor.
   */
  suspect(key: string, tookMs: number): ProjectRest | undefined {
    const queue = this.#queue(key);
    const rest = suspectProject(queue.project, tookMs);
    queue.suspectUntil = queue.project.suspectUntil;
    this.#tried.delete(key);
    return rest;
  }

  /** The function may then share a process, unless it is suspected. */
  answered(key: string, calls = 1, tookMs = 0): void {
    const queue = this.#queues.get(key);
    if (queue) queue.interrupted = false;
    this.#tried.delete(key);
    this.#tried.set(key, Math.max(1, Math.min(MAX_CALLS, Math.floor((calls * TURN_MS) / tookMs))));
    if (this.#tried.size > MAX_TRIED) this.#tried.delete(this.#tried.keys().next().value!);
  }

  /**
   * A call running apart was ended after `tookMs` in favour of a new function. Its project rests as
   * in `suspect`.
   */
  interrupted(key: string, tookMs: number): ProjectRest | undefined {
    const queue = this.#queue(key);
    queue.interrupted = true;
    return suspectProject(queue.project, tookMs);
  }

  /** No function has answered a call yet. */
  get areAllNew(): boolean {
    return this.#tried.size === 0;
  }

  /**
   * A new function that may run now is waiting. With `instead`, one of another project that could
   * run in its place.
   */
  newWaits(instead?: string): boolean {
    const now = performance.now();
    const running = instead === undefined ? undefined : this.#queue(instead).project;
    for (const [key, queue] of this.#queues) {
      const { project, waiting } = queue;
      if (
        waiting.length === 0 ||
        queue.running > 0 ||
        project.rests > 0 ||
        !this.#isNew(key, queue, now)
      )
        continue;
      if (running ? project !== running : project.running < this.#most(project, now)) return true;
    }
    return false;
  }

  /** Idle processes that waiting calls could use. */
  get wanted(): number {
    const now = performance.now();
    let [wanted, apart] = [0, 0];
    for (const project of this.#projects.values()) {
      const free = this.#most(project, now) - project.running;
      let tried = 0;
      for (const [key, queue] of project.queues) {
        const { waiting, running } = queue;
        if (!this.#isApart(key, queue, now))
          tried += Math.min(
            this.#share - running,
            Math.ceil(waiting.length / this.#tried.get(key)!),
          );
        else if (waiting.length > 0 && project.rests === 0 && free > 0) apart = 1;
      }
      wanted += Math.min(free, tried);
    }
    return wanted + (this.#isConfined(now) ? 0 : apart);
  }

  /**
   * Calls of one function for a process. Functions that run apart are considered only if
   * `apartToo`. Call `release` when the process has finished.
   */
  take(apartToo = true): Taken | undefined {
    const now = performance.now();
    const isFree = apartToo && !this.#isConfined(now);
    const newWaits = isFree && this.newWaits();
    for (const [name, project] of this.#projects) {
      if (project.running >= this.#most(project, now)) continue;
      for (const [key, queue] of project.queues) {
        if (queue.waiting.length === 0) {
          this.#forgetIdle(queue, now);
          continue;
        }
        const apart = this.#isApart(key, queue, now);
        if (queue.running >= (apart ? 1 : this.#share)) continue;
        if (apart && (!isFree || project.rests > 0 || (newWaits && !this.#isNew(key, queue, now))))
          continue;
        queue.running += 1;
        project.running += 1;
        toTheEnd(project.queues, key, queue);
        toTheEnd(this.#projects, name, project);
        // One call at a time, so that a good call is answered before the next may end the process.
        return { key, calls: cut(queue, apart ? 1 : this.#tried.get(key)!), apart };
      }
    }
    return undefined;
  }

  drop(key: string): QueuedCall[] {
    const queue = this.#queues.get(key);
    const calls = queue?.waiting.splice(0) ?? [];
    if (queue) this.#forgetIdle(queue, performance.now());
    return calls;
  }

  clear(): QueuedCall[] {
    return [...this.#queues.values()].flatMap((queue) => queue.waiting.splice(0));
  }

  #most({ suspectUntil }: ProjectQueues, now: number): number {
    return suspectUntil > now || this.#sharedUntil > now ? this.#share : this.#processes;
  }

  /** All functions that run apart share one process. */
  #isConfined(now: number): boolean {
    for (const [key, queue] of this.#queues)
      if (queue.running > 0 && this.#isApart(key, queue, now)) return true;
    return false;
  }

  #isApart(key: string, { suspectUntil }: FunctionQueue, now: number): boolean {
    return suspectUntil > now || !this.#tried.has(key);
  }

  #isNew(key: string, { suspectUntil, interrupted }: FunctionQueue, now: number): boolean {
    return suspectUntil <= now && !interrupted && !this.#tried.has(key);
  }

  #queue(key: string, name = key): FunctionQueue {
    let queue = this.#queues.get(key);
    if (queue) return queue;
    let project = this.#projects.get(name);
    if (!project)
      this.#projects.set(
        name,
        (project = { name, queues: new Map(), running: 0, suspectUntil: 0, rests: 0 }),
      );
    queue = { key, project, waiting: [], running: 0, suspectUntil: 0, interrupted: false };
    this.#queues.set(key, queue);
    project.queues.set(key, queue);
    return queue;
  }

  /** A suspected queue or project is kept. */
  #forgetIdle({ key, project, waiting, running, suspectUntil }: FunctionQueue, now: number): void {
    if (waiting.length > 0 || running > 0 || suspectUntil > now) return;
    // The last queue of a suspected project is kept: removing it would remove the suspicion.
    if (project.suspectUntil > now && project.queues.size === 1) return;
    this.#queues.delete(key);
    project.queues.delete(key);
    if (project.queues.size === 0) this.#projects.delete(project.name);
  }
}

function suspectProject(project: ProjectQueues, tookMs: number): ProjectRest | undefined {
  const now = performance.now();
  const ms =
    project.suspectUntil > now ? Math.min(MAX_REST_MS, RESTS * (tookMs + REPLACING_MS)) : 0;
  project.suspectUntil = now + ms + SUSPICION_MS;
  if (ms === 0) return undefined;
  project.rests += 1;
  return { ms, end: () => void (project.rests -= 1) };
}

function toTheEnd<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
}

/** From the front of the queue: calls that may share a chunk. */
function cut(queue: FunctionQueue, most: number): QueuedCall[] {
  const { waiting } = queue;
  const first = waiting[0]!;
  let count = 1;
  // A call during which a process died for an unknown reason runs alone, to show whether it is the
  // cause.
  if (first.deaths === 0) {
    let chars = charsOf(first);
    while (count < most) {
      const next = waiting[count];
      if (next === undefined || next.deaths > 0 || next.text !== first.text) break;
      chars += charsOf(next);
      if (chars > MAX_CHARS) break;
      count += 1;
    }
  }
  return waiting.splice(0, count);
}

function charsOf({ payload, message }: QueuedCall): number {
  return payload.length + (message === undefined ? 0 : message.length);
}
