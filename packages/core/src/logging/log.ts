import { hostname } from 'node:os';
import { pino, type Logger, type LoggerOptions } from 'pino';
import type { PluginLog } from '@gateway/plugin';
import { limitLines, type LogLimit } from './log-limit.js';
import { loggable, withoutSecrets } from './redaction.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/**
 * A structured log: JSON lines, the fields first, then the sentence. Nothing per event above debug; `warn` is unexpected but recovered;
 * `error` means that data is lost or a person is needed. A sentence is a constant, and what differs is in the fields: `project_id`, `source_id`,
 * `event_id`, `event_delivery_id`, `endpoint_id` and `trace_id` under these names everywhere, an error as `error`. Never content of messages.
 */
export interface Log extends PluginLog {
  /** True when debug is written: what is said of each event is not even made without. */
  readonly debugging: boolean;
  /** A log that adds these fields to every line. */
  child(fields: object): Log;
}

/** More of one sentence than this says nothing new. */
const LIMIT: LogLimit = { lines: 100, windowMs: 60_000 };

/**
 * @param name the process: `gateway-server`, `gateway-agent`
 * @param environment name of the environment (`env`), which every line then carries
 * @param destination where the lines go; standard error without one, because standard output belongs to the answers of commands
 * @param limit lines of one sentence in a window of time, unless debug is written; those beyond it are counted in a line when the window is over
 */
export function createLog({
  level,
  name,
  environment,
  destination,
  limit = LIMIT,
}: {
  level: LogLevel;
  name: string;
  environment?: string;
  destination?: { write(line: string): void };
  limit?: LogLimit;
}): Log {
  const options: LoggerOptions = {
    level,
    base: { process: name, pid: process.pid, hostname: hostname() },
    messageKey: 'message',
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: loggable },
    hooks: {
      logMethod([fields, sentence = ''], write) {
        // Warnings of Node and plugins put what they like into a sentence.
        write.call(this, fields, withoutSecrets(sentence));
      },
    },
  };
  const logger = pino(options, destination ?? pino.destination({ fd: 2, sync: true }));
  const base = environment === undefined ? logger : logger.child({ environment });
  const may = limitLines<LimitedLevel>(limit, (at, sentence, leftOut) =>
    base[at]({ left_out: leftOut, like: sentence }, 'Lines like many others were left out; logger.level debug writes each.'),
  );
  return logOf(base, may);
}

type LimitedLevel = 'info' | 'warn' | 'error';

/**
 * pino takes the fields of a child as they are; secrets have to leave them too.
 *
 * @param given the fields of the log itself and of those it is a child of
 */
function logOf(logger: Logger, may: (level: LimitedLevel, sentence: string, subject: string) => boolean, given: object = {}): Log {
  const debugging = logger.isLevelEnabled('debug');
  const limited = (level: LimitedLevel) => {
    if (debugging || !logger.isLevelEnabled(level)) return logger[level].bind(logger);
    return (fields: object, sentence: string) => {
      if (may(level, sentence, subjectOf({ ...given, ...fields }))) logger[level](fields, sentence);
    };
  };
  return {
    debugging,
    debug: logger.debug.bind(logger),
    info: limited('info'),
    warn: limited('warn'),
    error: limited('error'),
    child: (fields) => logOf(logger.child(loggable({ ...fields })), may, { ...given, ...fields }),
  };
}

/** What goes wrong with another source or endpoint, or for another reason, is news, though the sentence is the same. */
function subjectOf(fields: Readonly<Record<string, unknown>>): string {
  const { project_id, source_id, endpoint_id, error } = fields;
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  return [project_id, source_id, endpoint_id, code ?? name].map(String).join(' ');
}

/** A log that says nothing. */
export const silentLog: Log = {
  debugging: false,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};
