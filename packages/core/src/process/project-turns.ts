/** Runs the work of a project one piece after the other, and that of several projects side by side. */
export class ProjectTurns {
  /** By project: the end of its last piece, which does not reject. */
  readonly #last = new Map<string, Promise<void>>();

  /** Begins when the project's work before has ended. Resolves and rejects as `work`. */
  run<Result>(projectId: string, work: () => Promise<Result>): Promise<Result> {
    const result = (this.#last.get(projectId) ?? Promise.resolve()).then(work);
    const end = () => {
      if (this.#last.get(projectId) === ended) this.#last.delete(projectId);
    };
    const ended = result.then(end, end);
    this.#last.set(projectId, ended);
    return result;
  }

  /** Resolves when nothing runs that was given before. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
