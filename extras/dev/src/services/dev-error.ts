/** An error of `gateway dev`, which prints its sentence and fix, and exits with 1. */
export class DevError extends Error {
  override readonly name = 'DevError';
  readonly fix: string;

  constructor(sentence: string, fix: string, cause?: unknown) {
    super(sentence, { cause });
    this.fix = fix;
  }
}
