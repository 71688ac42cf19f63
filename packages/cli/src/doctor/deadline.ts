import { failed, failedBy, type Finding } from './finding.js';

/** The time by which every check has to have answered. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** What the work found, or that it did not answer in time or threw. Never rejects. */
  bound<Found>(check: string, work: () => Promise<Found>): Promise<Found | Finding>;
}

/** @param ms from now */
export function deadlineIn(ms: number): Deadline & { clear(): void } {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(new Error('time is up')), ms);
  const { signal } = abort;
  const over = new Promise<'over'>((resolve) => signal.addEventListener('abort', () => resolve('over'), { once: true }));
  return {
    signal,
    clear: () => clearTimeout(timer),
    async bound(check, work) {
      const found = work().catch((error: unknown) => failedBy(check, error));
      const first = await Promise.race([found, over]);
      if (first !== 'over') return first;
      return failed(check, `no answer within ${ms / 1000} s`, 'see that it runs and that a firewall lets this machine reach it');
    },
  };
}
