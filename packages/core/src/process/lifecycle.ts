import { setTimeout as wait } from 'node:timers/promises';
import type { Log } from '../logging/log.js';

export class Lifecycle {
  readonly #parts: { readonly name: string; readonly close: () => Promise<void> | void }[] = [];
  #closing: Promise<void> | undefined;

  constructor(private readonly log: Log) {}

  add(name: string, close: () => Promise<void> | void): void {
    this.#parts.push({ name, close });
  }

  /**
   * Closes the last part first. After the deadline, closes the remaining ones without waiting.
   * Failures are logged. Later calls return the same promise.
   */
  close({ deadlineMs }: { deadlineMs: number }): Promise<void> {
    return (this.#closing ??= this.#closeAll(deadlineMs));
  }

  async #closeAll(deadlineMs: number): Promise<void> {
    const timer = new AbortController();
    const deadline = wait(deadlineMs, 'late' as const, { signal: timer.signal }).catch(
      () => 'late' as const,
    );
    let late = false;
    for (const { name, close } of this.#parts.splice(0).reverse()) {
      const closed = this.#close(name, close);
      if (late) continue;
      if ((await Promise.race([closed, deadline])) !== 'late') continue;
      late = true;
      this.log.warn(
        { part: name, deadline_ms: deadlineMs },
        'Shutdown timed out; closing the rest without waiting.',
      );
    }
    timer.abort();
  }

  async #close(name: string, close: () => Promise<void> | void): Promise<void> {
    try {
      await close();
      this.log.debug({ part: name }, 'Closed.');
    } catch (error) {
      this.log.warn({ part: name, error }, 'Closing failed.');
    }
  }
}

/**
 * SIGTERM, SIGINT or SIGHUP, which a closed terminal sends. A second signal exits immediately with
 * status 1.
 */
export function untilSignal(log: Log): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    const listen = (signal: NodeJS.Signals) => {
      if (asked) {
        log.warn({ signal }, 'A second signal: exiting without waiting.');
        process.exit(1);
      }
      asked = true;
      log.info({ signal }, 'Draining; a second signal exits immediately.');
      resolve(signal);
    };
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, listen);
  });
}
