import { TokenBuckets } from '@gateway/core/process';
import { TAKE_OVER_MS } from './kv.js';
import type { Kv, QueueName, SharedMap, Signal, SignalQueue } from './kv.js';

/** The least recently used values are evicted. */
const TEXTS_MAX = 10_000;

/** For `gateway dev`. When the process ends, reconciliation finds the events of its signals. */
export class MemoryKv implements Kv {
  readonly #queues: Partial<Record<QueueName, SignalQueue>> = {};
  readonly #breakers = memoryMap();
  readonly #buckets = new TokenBuckets();
  readonly #texts = new Map<string, { readonly text: string; readonly untilMs: number }>();
  readonly #takeOverMs: number;

  constructor({ takeOverMs = TAKE_OVER_MS } = {}) {
    this.#takeOverMs = takeOverMs;
  }

  queue(name: QueueName): SignalQueue {
    return (this.#queues[name] ??= memoryQueue(this.#takeOverMs));
  }

  map(): SharedMap {
    return this.#breakers;
  }

  async takeTokens(bucket: string, perSecond: number, wanted: number, burst = perSecond) {
    return this.#buckets.take(bucket, wanted, { perSecond, burst });
  }

  async get(name: string): Promise<string | undefined> {
    const found = this.#texts.get(name);
    this.#texts.delete(name);
    if (found === undefined || found.untilMs <= performance.now()) return undefined;
    this.#texts.set(name, found);
    return found.text;
  }

  getAll(names: readonly string[]): Promise<(string | undefined)[]> {
    return Promise.all(names.map((name) => this.get(name)));
  }

  async set(
    name: string,
    text: string,
    { ttlMs, ifAbsent = false }: { ttlMs: number; ifAbsent?: boolean },
  ): Promise<void> {
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
    some: async (fields) => ({
      nowMs: Date.now(),
      entries: new Map(fields.flatMap((it) => (map.has(it) ? [[it, map.get(it)!]] : []))),
      size: map.size,
    }),
    change: async (changes) =>
      changes.map(({ field, from, to }) => {
        if (map.get(field) !== from) return false;
        if (to === undefined) map.delete(field);
        else map.set(field, to);
        return true;
      }),
  };
}

function memoryQueue(takeOverMs: number): SignalQueue {
  const waiting: Signal[] = [];
  const pulled = new Map<string, { readonly signal: Signal; readonly untilMs: number }>();
  const wakers = new Set<() => void>();
  let last = 0;

  /** Signals pulled too long ago return to the front of the queue. */
  function takeOver(): void {
    const abandoned: Signal[] = [];
    for (const { signal, untilMs } of pulled.values()) {
      if (untilMs > performance.now()) break;
      abandoned.push(signal);
    }
    for (const { ticket } of abandoned) pulled.delete(ticket);
    waiting.unshift(...abandoned);
  }

  /** Resolves on a push, the next takeover deadline, or an abort. */
  function untilMore(signal: AbortSignal): Promise<void> {
    const [oldest] = pulled.values();
    return new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        wakers.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const timer = oldest && setTimeout(wake, Math.max(1, oldest.untilMs - performance.now()));
      wakers.add(wake);
      signal.addEventListener('abort', wake);
    });
  }

  return {
    async push(texts) {
      const pushedAtMs = Date.now();
      for (const text of texts) waiting.push({ ticket: String(++last), text, pushedAtMs });
      for (const wake of wakers) wake();
    },
    async pull(limit, signal) {
      while (!signal.aborted) {
        takeOver();
        const signals = waiting.splice(0, limit);
        for (const one of signals)
          pulled.set(one.ticket, { signal: one, untilMs: performance.now() + takeOverMs });
        if (signals.length > 0) return signals;
        await untilMore(signal);
      }
      return [];
    },
    async done(tickets) {
      for (const ticket of tickets) pulled.delete(ticket);
    },
    depth: async () => waiting.length + pulled.size,
    load: async () => ({ waiting: waiting.length, pulled: pulled.size }),
  };
}
