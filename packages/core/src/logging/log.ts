import { hostname } from 'node:os';
import { pino, type Logger, type LoggerOptions } from 'pino';
import type { PluginLog } from '@gateway/plugin';
import { loggable, withoutSecrets } from './redaction.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/**
 * A log of JSON lines. Per-event lines are debug only; `warn`: unexpected but recovered; `error`:
 * data loss or manual action needed. Sentences are constant; variables are fields: `project_id`,
 * `source_id`, `event_id`, `event_delivery_id`, `endpoint_id`, `trace_id`, `error`. Message
 * contents are never logged.
 */
export interface Log extends PluginLog {
  /** Check it before building a line per event. */
  readonly debugging: boolean;
  child(fields: object): Log;
}

const LIMIT: LogLimit = { lines: 100, windowMs: 60_000 };

/**
 * Creates a log with masked secrets. Repeated lines are limited, by default to 100 a minute, except
 * at debug.
 */
export function createLog(given: {
  level: LogLevel;
  name: string;
  /** The setting `env`. */
  environment?: string;
  /** Default: standard error, because standard output is for the output of commands. */
  destination?: { write(line: string): void };
  /** Does not apply at debug. */
  limit?: LogLimit;
}): Log {
  const { level, name, environment, destination, limit = LIMIT } = given;
  const options: LoggerOptions = {
    level,
    base: { process: name, pid: process.pid, hostname: hostname() },
    messageKey: 'message',
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: loggable },
    hooks: {
      logMethod([fields, sentence = ''], write) {
        // Warnings of Node.js and plugins may hold secrets.
        write.call(this, fields, withoutSecrets(sentence));
      },
    },
  };
  const logger = pino(options, destination ?? pino.destination({ fd: 2, sync: true }));
  const base = environment === undefined ? logger : logger.child({ environment });
  const may = limitLines<LimitedLevel>(limit, (at, sentence, leftOut) =>
    base[at](
      { left_out: leftOut, like: sentence },
      'Lines like many others were left out; logger.level debug writes each.',
    ),
  );
  return logOf(base, may);
}

type LimitedLevel = 'info' | 'warn' | 'error';

/** @param given the fields, from which pino does not remove secrets */
function logOf(
  logger: Logger,
  may: (level: LimitedLevel, sentence: string, subject: string) => boolean,
  given: object = {},
): Log {
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

/** Other sources, endpoints and errors count separately. */
function subjectOf(fields: Readonly<Record<string, unknown>>): string {
  const { project_id, source_id, endpoint_id, error } = fields;
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  return [project_id, source_id, endpoint_id, code ?? name].map(String).join(' ');
}

export const silentLog: Log = {
  debugging: false,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};

/** Lines per level, sentence and window, plus as many about new subjects. */
export interface LogLimit {
  readonly lines: number;
  readonly windowMs: number;
}

/** Sentences beyond this number share one limit. */
const SENTENCES_MAX = 500;
const OTHERS = 'Lines of many kinds';

/**
 * Keeps a frequent event from filling the disk. Returns a function that decides whether to write a
 * line about a subject. `tell` reports omitted lines when the window or the process ends.
 */
function limitLines<Level extends string>(
  { lines, windowMs }: LogLimit,
  tell: (level: Level, sentence: string, leftOut: number) => void,
): (level: Level, sentence: string, subject: string) => boolean {
  const counts = new Map<
    string,
    { level: Level; sentence: string; subjects: Set<string>; written: number; leftOut: number }
  >();
  const closeWindow = () => {
    process.off('exit', closeWindow);
    for (const { level, sentence, leftOut } of counts.values())
      if (leftOut > 0) tell(level, sentence, leftOut);
    counts.clear();
  };
  return (level, sentence, subject) => {
    if (counts.size === 0) setTimeout(closeWindow, windowMs).unref();
    const known = counts.has(`${level} ${sentence}`) || counts.size < SENTENCES_MAX;
    const counted = known ? sentence : OTHERS;
    const key = `${level} ${counted}`;
    let count = counts.get(key);
    if (!count)
      counts.set(
        key,
        (count = { level, sentence: counted, subjects: new Set(), written: 0, leftOut: 0 }),
      );
    const may = count.written < (known && !count.subjects.has(subject) ? 2 * lines : lines);
    if (may) {
      count.written++;
      count.subjects.add(subject);
    } else if (count.leftOut++ === 0) {
      process.off('exit', closeWindow).on('exit', closeWindow);
    }
    return may;
  };
}
