/**
 * A failure that a person can mend: what happened, to which thing, and which field or setting to change. Secrets never go into it.
 */
export class PluginError extends Error {
  /** What to do about it, one sentence. */
  readonly fix: string;

  constructor(message: string, options: { fix: string; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = 'PluginError';
    this.fix = options.fix;
  }
}
