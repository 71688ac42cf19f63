import type { CallAnswer, Payload } from '../protocol/protocol.js';

/** A payload for a function, or a check of it, that waits for its answer. */
export interface QueuedCall {
  text: string;
  /** Undefined for a check. */
  payload: Payload | undefined;
  /** Processes that died for an unknown reason during this call. */
  deaths: number;
  settle(answer: CallAnswer): void;
  fail(error: Error): void;
}

export interface Taken {
  key: string;
  calls: QueuedCall[];
  /** The function is new or suspected: its call may occupy the process until the deadline. */
  apart: boolean;
}

interface FunctionQueue {
  readonly key: string;
  readonly project: ProjectQueues;
  waiting: QueuedCall[];
  /** Processes that run calls of this queue. */
  running: number;
  /** Set when a process was killed because of it. */
  suspectUntil: number;
  /** The call was interrupted for a new function; the queue waits for all new ones. */
  interrupted: boolean;
}

/** The functions of one project, in the order of their turns. */
interface ProjectQueues {
  readonly name: string;
  readonly queues: Map<string, FunctionQueue>;
  running: number;
  /** Set when a process was killed because of one of its functions. */
  suspectUntil: number;
  /** Active rests, during which its functions apart do not run. */
  rests: number;
}

/** A pause for a project's functions apart, ended by the caller after `ms`. */
export interface ProjectRest {
  readonly ms: number;
  end(): void;
}

/**
 * About a millisecond of a fast function, which fits a CPU cache: chunks of 256 calls of 1 KB took
 * up to a fifth longer per call.
 */
const MAX_CALLS = 64;
const MAX_CHARS = 128 * 1024;
/** Slow calls use smaller chunks: others would wait for all 64. */
const TURN_MS = 50;

/** How long a function and its project are suspected after a process was killed. */
const SUSPICION_MS = 60_000;
/** How long projects share the processes after calls of two of them. */
const SHARING_MS = 60_000;

/** A project that keeps overrunning rests for twice the time of the call and its new process. */
const RESTS = 2;
const REPLACING_MS = 150;
const MAX_REST_MS = 60_000;

/** Functions remembered as tried; a forgotten one is tried again. */
const MAX_TRIED = 10_000;

/**
 * Decides which calls run next. Projects take turns, and so do their functions. No function
 * occupies all processes, nor does a project that is suspected or shares them: others always find
 * one that is not stuck in a loop. New and suspected functions run apart: one call at a time, all
 * in the same process, new ones first.
 */
export class FunctionQueues {
  readonly #processes: number;
  /** Process limit of a function, and of a project that shares them. */
  readonly #share: number;
  readonly #queues = new Map<string, FunctionQueue>();
  readonly #projects = new Map<string, ProjectQueues>();
  /** Tried functions, least recently answered first, with the calls that fit into a turn. */
  readonly #tried = new Map<string, number>();
  #lastProject: string | undefined;
  #sharedUntil = 0;

  constructor(processes: number) {
    this.#processes = processes;
    this.#share = Math.max(1, processes - 1);
  }

  /** @param project always the same for a function; by default the function is its own project */
  add(key: string, calls: readonly QueuedCall[], project = key): void {
    const queue = this.#queue(key, project);
    if (this.#lastProject !== undefined && this.#lastProject !== project)
      this.#sharedUntil = performance.now() + SHARING_MS;
    this.#lastProject = project;
    for (const call of calls) queue.waiting.push(call);
  }

  /** Ends a `take`. Unanswered calls return to the front of their queue. */
  release(key: string, unanswered: readonly QueuedCall[]): void {
    const queue = this.#queue(key);
    queue.running -= 1;
    queue.project.running -= 1;
    if (unanswered.length > 0) queue.waiting = [...unanswered, ...queue.waiting];
    else this.#forgetIdle(queue, performance.now());
  }

  /**
   * Suspects a function whose call ended its process after `tookMs`. From the second such call
   * within a minute its project rests: functions that only overrun cost neighbours at most a
   * quarter of a processor.
   */
  suspect(key: string, tookMs: number): ProjectRest | undefined {
    const queue = this.#queue(key);
    const rest = suspectProject(queue.project, tookMs);
    queue.suspectUntil = queue.project.suspectUntil;
    this.#tried.delete(key);
    return rest;
  }

  /** Reports answered calls: the function may share a process unless suspected. */
  answered(key: string, calls = 1, tookMs = 0): void {
    const queue = this.#queues.get(key);
    if (queue) queue.interrupted = false;
    this.#tried.delete(key);
    this.#tried.set(key, Math.max(1, Math.min(MAX_CALLS, Math.floor((calls * TURN_MS) / tookMs))));
    if (this.#tried.size > MAX_TRIED) this.#tried.delete(this.#tried.keys().next().value!);
  }

  /**
   * A call apart was ended after `tookMs` for a new function. Its project rests like in `suspect`.
   */
  interrupted(key: string, tookMs: number): ProjectRest | undefined {
    const queue = this.#queue(key);
    queue.interrupted = true;
    return suspectProject(queue.project, tookMs);
  }

  /** Whether no function has answered a call yet. */
  get areAllNew(): boolean {
    return this.#tried.size === 0;
  }

  /** Whether a new function waits that may run, or could without `instead` of another project. */
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

  /** How many idle processes the waiting calls could use. */
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

  /** Returns calls of one function for a process, apart only if `apartToo`. `release` ends it. */
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
        // One by one: a good call is answered before the next one may end the process.
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

  /** Whether a function apart is running: they share one process. */
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

  /** Forgets a queue without calls, and its project, unless suspected. */
  #forgetIdle({ key, project, waiting, running, suspectUntil }: FunctionQueue, now: number): void {
    if (waiting.length > 0 || running > 0 || suspectUntil > now) return;
    // The last queue of a suspected project keeps the suspicion.
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

/** Takes calls that may share a chunk from the front of a queue. */
function cut(queue: FunctionQueue, most: number): QueuedCall[] {
  const { waiting } = queue;
  const first = waiting[0]!;
  let count = 1;
  // A call whose process died for an unknown reason runs alone, to show whether it is the cause.
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
