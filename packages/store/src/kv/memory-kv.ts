import { TAKE_OVER_MS } from './kv.js';
import type { Kv, MapName, QueueLoad, QueueName, SharedMap, Signal, SignalQueue } from './kv.js';

/** Limit of texts; the least recently used are dropped beyond it. */
const TEXTS_MAX = 10_000;

/** KV of a single process, used by `gateway dev`. Signals are lost with the process; reconciliation finds their events. */
export class MemoryKv implements Kv {
  readonly #queues: Partial<Record<QueueName, MemoryQueue>> = {};
  readonly #maps: Partial<Record<MapName, SharedMap>> = {};
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();
  /** In order of use: a Map keeps insertion order. */
  readonly #texts = new Map<string, { readonly text: string; readonly untilMs: number }>();
  readonly #takeOverMs: number;

  constructor({ takeOverMs = TAKE_OVER_MS } = {}) {
    this.#takeOverMs = takeOverMs;
  }

  queue(name: QueueName): SignalQueue {
    return (this.#queues[name] ??= new MemoryQueue(this.#takeOverMs));
  }

  map(name: MapName): SharedMap {
    return (this.#maps[name] ??= memoryMap());
  }

  async takeTokens(bucket: string, ratePerSecond: number, wanted: number, capacity = ratePerSecond) {
    const nowMs = performance.now();
    const state = this.#buckets.get(bucket) ?? { tokens: capacity, atMs: nowMs };
    state.tokens = Math.min(capacity, state.tokens + ((nowMs - state.atMs) / 1000) * ratePerSecond);
    state.atMs = nowMs;
    this.#buckets.set(bucket, state);
    const granted = Math.min(wanted, Math.floor(state.tokens));
    state.tokens -= granted;
    return { granted, waitMs: granted > 0 ? 0 : Math.ceil(((1 - state.tokens) / ratePerSecond) * 1000) };
  }

  async get(name: string): Promise<string | undefined> {
    const found = this.#texts.get(name);
    this.#texts.delete(name);
    if (found === undefined || found.untilMs <= performance.now()) return undefined;
    this.#texts.set(name, found);
    return found.text;
  }

  async set(name: string, text: string, { ttlMs, ifAbsent = false }: { ttlMs: number; ifAbsent?: boolean }): Promise<void> {
    if (ifAbsent && (await this.get(name)) !== undefined) return;
    this.#texts.delete(name);
    this.#texts.set(name, { text, untilMs: performance.now() + ttlMs });
    const [oldest] = this.#texts.keys();
    if (this.#texts.size > TEXTS_MAX && oldest !== undefined) this.#texts.delete(oldest);
  }

  async ping(): Promise<void> {}

  async info(): Promise<null> {
    return null;
  }

  async close(): Promise<void> {}
}

function memoryMap(): SharedMap {
  const map = new Map<string, string>();
  return {
    all: async () => ({ nowMs: Date.now(), entries: new Map(map) }),
    change: async (changes) =>
      changes.map(({ field, from, to }) => {
        if (map.get(field) !== from) return false;
        if (to === undefined) map.delete(field);
        else map.set(field, to);
        return true;
      }),
  };
}

class MemoryQueue implements SignalQueue {
  readonly #takeOverMs: number;
  readonly #waiting: Signal[] = [];
  /** Pulled and not done, oldest first. */
  readonly #pulled = new Map<string, { readonly signal: Signal; readonly untilMs: number }>();
  readonly #wakers = new Set<() => void>();
  #last = 0;

  constructor(takeOverMs: number) {
    this.#takeOverMs = takeOverMs;
  }

  async push(texts: readonly string[]): Promise<void> {
    const pushedAtMs = Date.now();
    for (const text of texts) this.#waiting.push({ ticket: String(++this.#last), text, pushedAtMs });
    for (const wake of this.#wakers) wake();
  }

  async pull(limit: number, signal: AbortSignal): Promise<Signal[]> {
    while (!signal.aborted) {
      this.#takeOver();
      const signals = this.#waiting.splice(0, limit);
      for (const pulled of signals) this.#pulled.set(pulled.ticket, { signal: pulled, untilMs: performance.now() + this.#takeOverMs });
      if (signals.length > 0) return signals;
      await this.#untilMore(signal);
    }
    return [];
  }

  async done(tickets: readonly string[]): Promise<void> {
    for (const ticket of tickets) this.#pulled.delete(ticket);
  }

  async depth(): Promise<number> {
    return this.#waiting.length + this.#pulled.size;
  }

  async load(): Promise<QueueLoad> {
    return { waiting: this.#waiting.length, pulled: this.#pulled.size };
  }

  /** Puts signals that were held too long back in front. */
  #takeOver(): void {
    const abandoned: Signal[] = [];
    for (const { signal, untilMs } of this.#pulled.values()) {
      if (untilMs > performance.now()) break;
      abandoned.push(signal);
    }
    for (const { ticket } of abandoned) this.#pulled.delete(ticket);
    this.#waiting.unshift(...abandoned);
  }

  /** Resolves after a push, when a pulled signal may be taken over, or when the signal aborts. */
  async #untilMore(signal: AbortSignal): Promise<void> {
    const [oldest] = this.#pulled.values();
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
