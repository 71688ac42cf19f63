// The name under which the text of a function is compiled, so that its lines can be told from all others in a stack.
export const SOURCE_NAME = 'transform.js';

const lines = new WeakMap<object, number>();

interface Frame {
  getScriptNameOrSourceURL(): string | null;
  getLineNumber(): number | null;
}

/**
 * Makes errors remember on which line of the function they were thrown. Call once, after lockdown(). The stack itself stays hidden
 * from functions: `error.stack` is an empty text.
 */
export function rememberErrorLines(): void {
  // V8's own hook, https://v8.dev/docs/stack-trace-api; after lockdown only the host's Error has it.
  Error.prepareStackTrace = (error: object, frames: readonly Frame[]) => {
    const line = frames.find((frame) => frame.getScriptNameOrSourceURL() === SOURCE_NAME)?.getLineNumber();
    if (typeof line === 'number') lines.set(error, line);
    return '';
  };
}

/**
 * The line of the function on which the error was made, counted from 1, or undefined when it has none. May run code of the function.
 * Never throws.
 */
export function lineOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  try {
    // V8 calls the hook when the stack is first read. What was thrown may be no error, and its stack a getter of the function's own.
    void (error as { stack?: unknown }).stack;
  } catch {
    // It has none.
  }
  return lines.get(error);
}

export function onLine(line: number | string | undefined): string {
  return line === undefined ? '' : ` on line ${line}`;
}
