import type { Log } from '@gateway/core/logging';

/** A log for who stands before the terminal: warnings and errors as sentences on standard error. */
export const stderrLog: Log = {
  debugging: false,
  debug: () => undefined,
  info: () => undefined,
  warn: (_fields, sentence) => void process.stderr.write(`warning: ${sentence}\n`),
  error: (_fields, sentence) => void process.stderr.write(`error: ${sentence}\n`),
  child: () => stderrLog,
};
