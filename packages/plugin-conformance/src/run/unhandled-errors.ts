/** Catches what nobody else does, so that it is told in place of ending the process. */
export interface Escapes {
  /** Every rejection without a handler and every exception that reached the event loop, as text. */
  readonly caught: readonly string[];
  /** Gives the process back its own way with them. */
  close(): void;
}

export function watchEscapes(): Escapes {
  const caught: string[] = [];
  const rejected = (reason: unknown) => void caught.push(`a rejection that nobody handles: ${textOf(reason)}`);
  const thrown = (error: unknown) => void caught.push(`an exception that nobody catches: ${textOf(error)}`);
  process.on('unhandledRejection', rejected);
  process.on('uncaughtException', thrown);
  return {
    caught,
    close: () => {
      process.off('unhandledRejection', rejected);
      process.off('uncaughtException', thrown);
    },
  };
}

function textOf(reason: unknown): string {
  return reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
}
