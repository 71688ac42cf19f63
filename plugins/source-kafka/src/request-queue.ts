import { createRequire } from 'node:module';

/** What is used of the request queue of kafkajs 2.2.4, the exact version that this package depends on. */
interface RequestQueue {
  readonly pending: readonly unknown[];
  readonly inflight: ReadonlyMap<number, { sentAt: number; requestTimeout: number; timeoutRequest(): void }>;
  readonly enforceRequestTimeout: boolean;
  requestTimeoutIntervalId?: NodeJS.Timeout;
  isConnected(): boolean;
  destroy(): void;
  scheduleCheckPendingRequests(): void;
  scheduleRequestTimeoutCheck(): void;
}

/** Resolution of request timeouts, which are ten seconds and more; that of kafkajs is 100 ms. */
const TIMEOUT_CHECK_MS = 1000;

let isPatched = false;

/**
 * Patches the timers of kafkajs: after every response its request queue sets a timer with a negative delay, even when nothing is pending, which wakes the process
 * every millisecond per connection. An idle consumer took 2.9 % of a core, patched 0.25 %. https://github.com/tulios/kafkajs/issues/1751
 */
export function patchRequestQueue(): void {
  if (isPatched) return;
  isPatched = true;
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as { prototype: RequestQueue };
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0) schedule.call(this);
  };
  prototype.scheduleRequestTimeoutCheck = function (this: RequestQueue) {
    if (!this.enforceRequestTimeout) return;
    this.destroy();
    this.requestTimeoutIntervalId = setInterval(() => {
      const now = Date.now();
      for (const request of [...this.inflight.values()]) {
        if (now - request.sentAt > request.requestTimeout) request.timeoutRequest();
      }
      if (!this.isConnected()) this.destroy();
    }, TIMEOUT_CHECK_MS);
  };
}
