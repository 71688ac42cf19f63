import { MAX_LOG_LINE_CHARS, MAX_LOG_LINES } from '../protocol/limits.js';

export interface GuestConsole {
  /** The global of functions. */
  console: object;
  /** The lines since the last `take`, in order. */
  take(): string[];
}

/** Makes a console that collects a bounded number of lines. */
export function makeGuestConsole(): GuestConsole {
  let lines: string[] = [];
  let dropped = 0;
  const write = (...values: unknown[]): void => {
    // Beyond the bound a line is not even formatted.
    if (lines.length >= MAX_LOG_LINES) {
      dropped += 1;
      return;
    }
    lines.push(values.map(show).join(' ').slice(0, MAX_LOG_LINE_CHARS));
  };
  const method = () => ({ write: (...values: unknown[]) => write(...values) }).write;
  return {
    console: harden({ log: method(), info: method(), warn: method(), error: method(), debug: method(), trace: method() }),
    take() {
      const taken = dropped === 0 ? lines : [...lines, `(${dropped} further lines were dropped)`];
      lines = [];
      dropped = 0;
      return taken;
    },
  };
}

function show(value: unknown): string {
  if (typeof value === 'string') return value.slice(0, MAX_LOG_LINE_CHARS);
  if (typeof value !== 'object' || value === null) return String(value);
  try {
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    return JSON.stringify(value) ?? '(no JSON text)';
  } catch {
    return '(an object without JSON text)';
  }
}
