/**
 * The sandbox itself failed, not the function: no process can be started, or the sandbox was closed. The payloads are unjudged, and
 * may be run again later. Never the fault of a message.
 */
export class SandboxError extends Error {
  /** What to do about it, one sentence. */
  readonly fix: string;

  constructor(message: string, options: { fix: string; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = 'SandboxError';
    this.fix = options.fix;
  }
}
