/** How a part stands. `skipped`: nothing was looked at, because of what the sentence says. */
export type State = 'ok' | 'warning' | 'failed' | 'skipped';

/** What one check found. */
export interface Finding {
  readonly check: string;
  readonly state: State;
  readonly sentence: string;
  /** What to do about it. */
  readonly fix?: string;
}

export function ok(check: string, sentence: string): Finding {
  return { check, state: 'ok', sentence };
}

export function skipped(check: string, sentence: string): Finding {
  return { check, state: 'skipped', sentence };
}

export function warning(check: string, sentence: string, fix: string): Finding {
  return { check, state: 'warning', sentence, fix };
}

export function failed(check: string, sentence: string, fix: string): Finding {
  return { check, state: 'failed', sentence, fix };
}

/** A failure by the error that it threw, with the remedy that errors of the gateway and of plugins carry. */
export function failedBy(check: string, error: unknown, otherwise = 'this is not foreseen: report it with its sentence'): Finding {
  const { message = String(error), fix } = (error ?? {}) as { message?: string; fix?: string };
  return failed(check, message, fix ?? otherwise);
}
