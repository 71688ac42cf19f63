import {
  TAKE_OVER_MS,
  type Kv,
  type MapChange,
  type MapName,
  type QueueLoad,
  type QueueName,
  type SharedMap,
  type Signal,
  type SignalQueue,
} from './kv.js';

/** Texts that are kept; beyond that those go that were not asked for the longest. */
const TEXTS_MAX = 10_000;

/** KV of a single process: what `gateway dev` runs on. Signals die with the process; the reconciler finds their events again. */
export class MemoryKv implements Kv {
  readonly #queues = new Map<QueueName, MemoryQueue>();
  readonly #maps = new Map<MapName, MemoryMap>();
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();
  /** In the order of their use, as a Map keeps the order of insertion. */
  readonly #texts = new Map<string, { readonly text: string; readonly untilMs: number }>();
  readonly #takeOverMs: number;

  constructor({ takeOverMs = TAKE_OVER_MS } = {}) {
    this.#takeOverMs = takeOverMs;
  }

  queue(name: QueueName): SignalQueue {
    let queue = this.#queues.get(name);
    if (!queue) this.#queues.set(name, (queue = new MemoryQueue(this.#takeOverMs)));
    return queue;
  }

  map(name: MapName): SharedMap {
    let map = this.#maps.get(name);
    if (!map) this.#maps.set(name, (map = new MemoryMap()));
    return map;
  }

  takeTokens(
    bucket: string,
    ratePerSecond: number,
    wanted: number,
    capacity = ratePerSecond,
  ): Promise<{ granted: number; waitMs: number }> {
    const nowMs = performance.now();
    const state = this.#buckets.get(bucket) ?? { tokens: capacity, atMs: nowMs };
    state.tokens = Math.min(capacity, state.tokens + ((nowMs - state.atMs) / 1000) * ratePerSecond);
    state.atMs = nowMs;
    this.#buckets.set(bucket, state);
    const granted = Math.min(wanted, Math.floor(state.tokens));
    state.tokens -= granted;
    return Promise.resolve({ granted, waitMs: granted > 0 ? 0 : Math.ceil(((1 - state.tokens) / ratePerSecond) * 1000) });
  }

  get(name: string): Promise<string | undefined> {
    const found = this.#texts.get(name);
    this.#texts.delete(name);
    if (found === undefined || found.untilMs <= performance.now()) return Promise.resolve(undefined);
    this.#texts.set(name, found);
    return Promise.resolve(found.text);
  }

  async set(name: string, text: string, { ttlMs, ifAbsent = false }: { ttlMs: number; ifAbsent?: boolean }): Promise<void> {
    if (ifAbsent && (await this.get(name)) !== undefined) return;
    this.#texts.delete(name);
    this.#texts.set(name, { text, untilMs: performance.now() + ttlMs });
    const [oldest] = this.#texts.keys();
    if (this.#texts.size > TEXTS_MAX && oldest !== undefined) this.#texts.delete(oldest);
  }

  ping(): Promise<void> {
    return Promise.resolve();
  }

  info(): Promise<null> {
    return Promise.resolve(null);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

class MemoryMap implements SharedMap {
  readonly #entries = new Map<string, string>();

  all(): Promise<{ nowMs: number; entries: ReadonlyMap<string, string> }> {
    return Promise.resolve({ nowMs: Date.now(), entries: new Map(this.#entries) });
  }

  change(changes: readonly MapChange[]): Promise<boolean[]> {
    return Promise.resolve(
      changes.map(({ field, from, to }) => {
        if (this.#entries.get(field) !== from) return false;
        if (to === undefined) this.#entries.delete(field);
        else this.#entries.set(field, to);
        return true;
      }),
    );
  }
}

class MemoryQueue implements SignalQueue {
  readonly #takeOverMs: number;
  readonly #waiting: Signal[] = [];
  /** Pulled and not done, with the time until which they are held; the oldest first, as a Map keeps the order of insertion. */
  readonly #held = new Map<string, { readonly signal: Signal; readonly untilMs: number }>();
  readonly #wakers = new Set<() => void>();
  #last = 0;

  constructor(takeOverMs: number) {
    this.#takeOverMs = takeOverMs;
  }

  push(texts: readonly string[]): Promise<void> {
    const pushedAtMs = Date.now();
    for (const text of texts) this.#waiting.push({ ticket: String(++this.#last), text, pushedAtMs });
    for (const wake of this.#wakers) wake();
    return Promise.resolve();
  }

  async pull(limit: number, signal: AbortSignal): Promise<Signal[]> {
    while (!signal.aborted) {
      this.#abandon();
      const signals = this.#waiting.splice(0, limit);
      for (const pulled of signals) this.#held.set(pulled.ticket, { signal: pulled, untilMs: performance.now() + this.#takeOverMs });
      if (signals.length > 0) return signals;
      await this.#more(signal);
    }
    return [];
  }

  done(tickets: readonly string[]): Promise<void> {
    for (const ticket of tickets) this.#held.delete(ticket);
    return Promise.resolve();
  }

  depth(): Promise<number> {
    return Promise.resolve(this.#waiting.length + this.#held.size);
  }

  load(): Promise<QueueLoad> {
    return Promise.resolve({ waiting: this.#waiting.length, pulled: this.#held.size });
  }

  /** What was held for too long waits again, in front of what came later. */
  #abandon(): void {
    const abandoned: Signal[] = [];
    for (const { signal, untilMs } of this.#held.values()) {
      if (untilMs > performance.now()) break;
      abandoned.push(signal);
    }
    if (abandoned.length === 0) return;
    for (const { ticket } of abandoned) this.#held.delete(ticket);
    this.#waiting.unshift(...abandoned);
  }

  /** Resolves when something is pushed, when something that is held may be taken over, or when the signal aborts. */
  async #more(signal: AbortSignal): Promise<void> {
    const [oldest] = this.#held.values();
    await new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#wakers.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const timer = oldest && setTimeout(wake, Math.max(1, oldest.untilMs - performance.now()));
      this.#wakers.add(wake);
      signal.addEventListener('abort', wake);
    });
  }
}
