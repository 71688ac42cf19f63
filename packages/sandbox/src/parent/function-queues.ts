import type { Answer, Payload } from '../protocol/protocol.js';

/** One payload of a function, or the check of a function, that waits for its answer. */
export interface Call {
  text: string;
  /** Undefined for a check. */
  payload: Payload | undefined;
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
  readonly key: string;
  readonly project: Project;
  waiting: Call[];
  /** Processes that run calls of this queue. */
  running: number;
  /** A process was killed because of it lately. */
  suspectUntil: number;
  /** Its call was interrupted so that a new function could be tried; it waits until no new one does. */
  interrupted: boolean;
}

/** The functions of one project, in the order of their turns. */
interface Project {
  readonly name: string;
  readonly queues: Map<string, FunctionQueue>;
  /** Processes that run calls of its functions. */
  running: number;
  /** A process was killed because of one of its functions lately. */
  suspectUntil: number;
  /** Rests that have not ended: its functions apart do not run. */
  rests: number;
}

/** A project's functions apart do not run until the caller ends it, after `ms`. */
export interface Rest {
  readonly ms: number;
  end(): void;
}

/** About a millisecond of a quick function, which fits a processor's cache: chunks of 256 calls of 1 KB took up to a fifth longer per call. */
const MAX_CALLS = 64;
const MAX_CHARS = 128 * 1024;
/** Slow calls go in smaller chunks, or others would wait for 64 of them. */
const TURN_MS = 50;

/** How long a function and its project stay suspected after a process was killed. */
const SUSPICION_MS = 60_000;
/** How long projects share the processes after calls of two of them. */
const SHARING_MS = 60_000;

/** A project that keeps overrunning rests for twice the time that the call and the replacement of its process took. */
const RESTS = 2;
const REPLACING_MS = 150;
const MAX_REST_MS = 60_000;

/** Functions that are remembered as tried; one that is forgotten is tried again. */
const MAX_TRIED = 10_000;

/**
 * Decides which calls run next. Each function has a queue. Projects take turns, and so do the functions of a project. No function has all
 * processes, nor has a project that is suspected or shares them with others, so that the others always find one that is not stuck in a loop.
 * Functions that have not answered a call yet, and suspected ones, run apart: one call at a time, all in the same process, new ones first.
 */
export class FunctionQueues {
  readonly #processes: number;
  /** The most processes of a function, and of a project that shares them. */
  readonly #share: number;
  readonly #queues = new Map<string, FunctionQueue>();
  readonly #projects = new Map<string, Project>();
  /** Functions that have answered a call since they last overran, in the order of their last answers, with the calls that fit into a turn. */
  readonly #tried = new Map<string, number>();
  #lastProject: string | undefined;
  #sharedUntil = 0;

  constructor(processes: number) {
    this.#processes = processes;
    this.#share = Math.max(1, processes - 1);
  }

  /** @param project always the same for a function, which is a project of its own without one */
  add(key: string, calls: readonly Call[], project = key): void {
    const queue = this.#queue(key, project);
    if (this.#lastProject !== undefined && this.#lastProject !== project) this.#sharedUntil = performance.now() + SHARING_MS;
    this.#lastProject = project;
    for (const call of calls) queue.waiting.push(call);
  }

  /** Ends a `take`. Unanswered calls return to the front of their queue. */
  release(key: string, unanswered: readonly Call[]): void {
    const queue = this.#queue(key);
    queue.running -= 1;
    queue.project.running -= 1;
    if (unanswered.length > 0) queue.waiting = [...unanswered, ...queue.waiting];
    else this.#forgetIdle(queue, performance.now());
  }

  /**
   * Suspects a function whose call ended its process after `tookMs`. From the second such call of its project within a minute, the project rests,
   * so that functions that only overrun, replaced by others or not, cost their neighbours at most a quarter of a processor.
   */
  suspect(key: string, tookMs: number): Rest | undefined {
    const queue = this.#queue(key);
    const rest = suspectProject(queue.project, tookMs);
    queue.suspectUntil = queue.project.suspectUntil;
    this.#tried.delete(key);
    return rest;
  }

  /** A function has answered a number of calls: it may share a process, once nothing is held against it. */
  answered(key: string, calls = 1, tookMs = 0): void {
    const queue = this.#queues.get(key);
    if (queue) queue.interrupted = false;
    this.#tried.delete(key);
    this.#tried.set(key, Math.max(1, Math.min(MAX_CALLS, Math.floor((calls * TURN_MS) / tookMs))));
    if (this.#tried.size > MAX_TRIED) this.#tried.delete(this.#tried.keys().next().value!);
  }

  /** The running call of a function apart was ended after `tookMs` for a new one. Its project rests as after `suspect`. */
  interrupted(key: string, tookMs: number): Rest | undefined {
    const queue = this.#queue(key);
    queue.interrupted = true;
    return suspectProject(queue.project, tookMs);
  }

  /** No function has answered a call yet. */
  get areAllNew(): boolean {
    return this.#tried.size === 0;
  }

  /** A function waits for its first call and may run, or would if the function `instead`, of another project, did not. */
  newWaits(instead?: string): boolean {
    const now = performance.now();
    const running = instead === undefined ? undefined : this.#queue(instead).project;
    for (const [key, queue] of this.#queues) {
      const { project, waiting } = queue;
      if (waiting.length === 0 || queue.running > 0 || project.rests > 0 || !this.#isNew(key, queue, now)) continue;
      if (running ? project !== running : project.running < this.#most(project, now)) return true;
    }
    return false;
  }

  /** How many idle processes the waiting calls could use. */
  get wanted(): number {
    const now = performance.now();
    let [wanted, apart] = [0, 0];
    for (const project of this.#projects.values()) {
      const free = this.#most(project, now) - project.running;
      let tried = 0;
      for (const [key, queue] of project.queues) {
        const { waiting, running } = queue;
        if (!this.#isApart(key, queue, now)) tried += Math.min(this.#share - running, Math.ceil(waiting.length / this.#tried.get(key)!));
        else if (waiting.length > 0 && project.rests === 0 && free > 0) apart = 1;
      }
      wanted += Math.min(free, tried);
    }
    return wanted + (this.#isConfined(now) ? 0 : apart);
  }

  /** The next calls for an idle process, all of one function, apart only if `apartToo`; undefined if none may run now. `release` ends it. */
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
        if (apart && (!isFree || project.rests > 0 || (newWaits && !this.#isNew(key, queue, now)))) continue;
        queue.running += 1;
        project.running += 1;
        toTheEnd(project.queues, key, queue);
        toTheEnd(this.#projects, name, project);
        // One by one: a good call is answered before the next one may end the process.
        return { key, calls: cut(queue, apart ? 1 : this.#tried.get(key)!), apart };
      }
    }
    return undefined;
  }

  /** Removes and returns the waiting calls of one function. */
  drop(key: string): Call[] {
    const queue = this.#queues.get(key);
    const calls = queue?.waiting.splice(0) ?? [];
    if (queue) this.#forgetIdle(queue, performance.now());
    return calls;
  }

  /** Removes and returns all waiting calls. */
  clear(): Call[] {
    return [...this.#queues.values()].flatMap((queue) => queue.waiting.splice(0));
  }

  /** The most processes that a project may have now. */
  #most({ suspectUntil }: Project, now: number): number {
    return suspectUntil > now || this.#sharedUntil > now ? this.#share : this.#processes;
  }

  /** Whether a function apart is running: they share one process. */
  #isConfined(now: number): boolean {
    for (const [key, queue] of this.#queues) if (queue.running > 0 && this.#isApart(key, queue, now)) return true;
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
    if (!project) this.#projects.set(name, (project = { name, queues: new Map(), running: 0, suspectUntil: 0, rests: 0 }));
    queue = { key, project, waiting: [], running: 0, suspectUntil: 0, interrupted: false };
    this.#queues.set(key, queue);
    project.queues.set(key, queue);
    return queue;
  }

  /** Forgets a queue without calls, and its project, unless they are suspected. */
  #forgetIdle({ key, project, waiting, running, suspectUntil }: FunctionQueue, now: number): void {
    if (waiting.length > 0 || running > 0 || suspectUntil > now) return;
    // The last one of a suspected project stays for what is held against it.
    if (project.suspectUntil > now && project.queues.size === 1) return;
    this.#queues.delete(key);
    project.queues.delete(key);
    if (project.queues.size === 0) this.#projects.delete(project.name);
  }
}

function suspectProject(project: Project, tookMs: number): Rest | undefined {
  const now = performance.now();
  const ms = project.suspectUntil > now ? Math.min(MAX_REST_MS, RESTS * (tookMs + REPLACING_MS)) : 0;
  project.suspectUntil = now + ms + SUSPICION_MS;
  if (ms === 0) return undefined;
  project.rests += 1;
  return { ms, end: () => void (project.rests -= 1) };
}

function toTheEnd<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
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
