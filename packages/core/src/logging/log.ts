import { hostname } from 'node:os';
import { pino, type Logger, type LoggerOptions } from 'pino';
import type { PluginLog } from '@gateway/plugin';
import { loggable, withoutSecrets } from './redaction.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/**
 * JSON lines. `debug` is for single events, `warn` for unexpected conditions that were recovered
 * from, `error` for data loss or problems that need a person. Sentences are constant; variable
 * parts are fields: `project_id`, `source_id`, `event_id`, `event_delivery_id`, `endpoint_id`,
 * `trace_id`, `error`. Message contents are never logged.
 */
export interface Log extends PluginLog {
  /** Check it before building a line per event. */
  readonly debugging: boolean;
  child(fields: object): Log;
}

const LIMIT: LogLimit = { lines: 100, windowMs: 60_000 };

/**
 * Masks secrets and, except at the debug level, limits repeated lines, by default to 100 a minute.
 */
export function createLog(given: {
  level: LogLevel;
  name: string;
  /** The `env` setting, added to every line. */
  environment?: string;
  /** Default: standard error, because standard output is for command output. */
  destination?: { write(line: string): void };
  /** For repeated lines. Not applied at the debug level. */
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
        // Mask sentences too, because warnings from Node.js and plugins may contain secrets.
        write.call(this, fields, withoutSecrets(sentence));
      },
    },
  };
  const logger = pino(options, destination ?? pino.destination({ fd: 2, sync: true }));
  const base = environment === undefined ? logger : logger.child({ environment });
  const may = limitLines<LimitedLevel>(limit, (at, sentence, leftOut) =>
    base[at](
      { left_out: leftOut, like: sentence },
      'Repeated log lines were omitted; logger.level debug writes all of them.',
    ),
  );
  return logOf(base, may);
}

type LimitedLevel = 'info' | 'warn' | 'error';

/** @param given the log's fields before masking, from which the subject of a line is derived */
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

/** Different sources, endpoints and errors are counted separately. */
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

/**
 * Lines per level and sentence in a window. Lines about subjects not yet seen in the window may
 * exceed it, up to twice the number.
 */
export interface LogLimit {
  readonly lines: number;
  readonly windowMs: number;
}

/** Sentences with their own limit. All others share one. */
const SENTENCES_MAX = 500;
const OTHERS = 'Lines of many kinds';

/**
 * Frequent events must not fill the disk. When the window or the process ends, `tell` reports how
 * many lines were omitted.
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
