/** What a call may use, and how many processes run calls. The settings `transform.*` bound each: below 16 MB Node does not start dependably. */
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

/** Characters that the text of a function may have. */
export const MAX_TEXT_CHARS = 256 * 1024;

/** Items that a returned array may have, each of them an event. */
export const MAX_ITEMS = 10_000;

/** Console output of a call; the rest is dropped, and the last line says so. */
export const MAX_LOG_LINES = 50;
export const MAX_LOG_LINE_CHARS = 1000;
