/** The command prints the sentence and the fix, and exits with 1. */
export class DevError extends Error {
  override readonly name = 'DevError';
  readonly fix: string;

  constructor(sentence: string, fix: string, cause?: unknown) {
    super(sentence, { cause });
    this.fix = fix;
  }
}
