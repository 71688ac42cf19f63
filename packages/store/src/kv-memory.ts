import type { Kv, QueueName, Signal, SignalQueue } from './kv.js';

/** KV of a single process: what `gateway dev` runs on. Signals die with the process; the reconciler finds their events again. */
export class MemoryKv implements Kv {
  readonly #queues = new Map<QueueName, MemoryQueue>();
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();

  queue(name: QueueName): SignalQueue {
    let queue = this.#queues.get(name);
    if (!queue) this.#queues.set(name, (queue = new MemoryQueue()));
    return queue;
  }

  takeTokens(bucket: string, ratePerSecond: number, wanted: number): Promise<{ granted: number; waitMs: number }> {
    const nowMs = performance.now();
    const state = this.#buckets.get(bucket) ?? { tokens: ratePerSecond, atMs: nowMs };
    state.tokens = Math.min(ratePerSecond, state.tokens + ((nowMs - state.atMs) / 1000) * ratePerSecond);
    state.atMs = nowMs;
    this.#buckets.set(bucket, state);
    const granted = Math.min(wanted, Math.floor(state.tokens));
    state.tokens -= granted;
    return Promise.resolve({ granted, waitMs: granted > 0 ? 0 : Math.ceil(((1 - state.tokens) / ratePerSecond) * 1000) });
  }

  ping(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

class MemoryQueue implements SignalQueue {
  #waiting: Signal[] = [];
  #pulled = 0;
  #last = 0;
  readonly #wakers = new Set<() => void>();

  push(texts: readonly string[]): Promise<void> {
    for (const text of texts) this.#waiting.push({ ticket: String(++this.#last), text });
    for (const wake of this.#wakers) wake();
    return Promise.resolve();
  }

  async pull(limit: number, signal: AbortSignal): Promise<Signal[]> {
    while (this.#waiting.length === 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#wakers.delete(wake);
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.#wakers.add(wake);
        signal.addEventListener('abort', wake);
      });
    }
    if (signal.aborted) return [];
    const signals = this.#waiting.splice(0, limit);
    this.#pulled += signals.length;
    return signals;
  }

  done(tickets: readonly string[]): Promise<void> {
    this.#pulled -= tickets.length;
    return Promise.resolve();
  }

  depth(): Promise<number> {
    return Promise.resolve(this.#waiting.length + this.#pulled);
  }
}
