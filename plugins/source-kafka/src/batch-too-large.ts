/** Bytes that a batch may hold: far more than any producer means, as a few kilobytes can be made to hold as many gigabytes. */
export const BATCH_MAX_BYTES = 256 * 1024 * 1024;

/** A batch holds more than it may. */
export class BatchTooLargeError extends Error {
  constructor(cause?: unknown) {
    super('A batch is too large when it is decompressed', { cause });
    this.name = 'BatchTooLargeError';
  }
}
