/** A mishap with its remedy; the command line prints both and ends with status 1. */
export class Problem extends Error {
  /** What to do about it. */
  readonly fix: string;

  constructor(message: string, { fix, cause }: { fix: string; cause?: unknown }) {
    super(message, { cause });
    this.name = 'Problem';
    this.fix = fix;
  }
}
