/** What a call may use, and how many processes run calls. */
export interface SandboxLimits {
  /** Wall-clock milliseconds of one call. */
  deadlineMs: number;
  /** Megabytes of JavaScript heap of one process. */
  memoryMb: number;
  /** Bytes of JSON text that one call may return, array items together. */
  maxOutputBytes: number;
  /** Maximum of child processes. With one, a function that overruns delays all others. */
  processes: number;
}

export const DEFAULT_LIMITS: Readonly<SandboxLimits> = { deadlineMs: 1000, memoryMb: 64, maxOutputBytes: 1024 * 1024, processes: 2 };

/** Node does not start dependably with less than 16 MB of heap. */
export const LIMIT_BOUNDS: Readonly<Record<keyof SandboxLimits, { readonly min: number; readonly max: number }>> = {
  deadlineMs: { min: 10, max: 3_600_000 },
  memoryMb: { min: 16, max: 16_384 },
  maxOutputBytes: { min: 2, max: 67_108_864 },
  processes: { min: 1, max: 64 },
};

/** Characters that the text of a function may have. */
export const MAX_TEXT_CHARS = 256 * 1024;

/** Items that a returned array may have, each of them an event. */
export const MAX_ITEMS = 10_000;

/** Console output of a call; the rest is dropped, and the last line says so. */
export const MAX_LOG_LINES = 50;
export const MAX_LOG_LINE_CHARS = 1000;

/** Fills in the defaults. Throws a RangeError that names an invalid limit. */
export function completeLimits(given: Partial<SandboxLimits>): SandboxLimits {
  const limits = { ...DEFAULT_LIMITS };
  for (const name of Object.keys(DEFAULT_LIMITS) as (keyof SandboxLimits)[]) {
    const value = given[name];
    if (value === undefined) continue;
    const { min, max } = LIMIT_BOUNDS[name];
    if (!Number.isInteger(value) || value < min || value > max) {
      throw new RangeError(`Sandbox limit ${name} is ${value}: give a whole number from ${min} to ${max}.`);
    }
    limits[name] = value;
  }
  return limits;
}
