import { hostname } from 'node:os';
import { pino, type Logger, type LoggerOptions } from 'pino';
import type { PluginLog } from '@gateway/plugin';
import { loggable, withoutSecrets } from './redaction.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/**
 * A structured log of JSON lines. Nothing per event above debug; `warn`: unexpected but recovered; `error`: data is lost or a person is
 * needed. A sentence is a constant; what varies is in the fields: `project_id`, `source_id`, `event_id`, `event_delivery_id`, `endpoint_id`,
 * `trace_id`, and an error as `error`. Never the content of messages.
 */
export interface Log extends PluginLog {
  /** Whether debug is written; check it before building a line per event. */
  readonly debugging: boolean;
  /** Returns a log that adds these fields to every line. */
  child(fields: object): Log;
}

const LIMIT: LogLimit = { lines: 100, windowMs: 60_000 };

/** Writes JSON lines with secrets masked. Except at level debug, repeated lines are limited, by default to about 100 a minute. */
export function createLog(given: {
  level: LogLevel;
  /** The process: `gateway-server`, `gateway-agent`. */
  name: string;
  /** The setting `env`, for every line. */
  environment?: string;
  /** By default standard error: standard output is for the output of commands. */
  destination?: { write(line: string): void };
  /** Of repeated lines; does not apply at debug. */
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
        // Sentences of Node's warnings and plugins may hold secrets.
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

/** @param given the fields of the log and its parents, from which pino does not remove secrets by itself */
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

/** The same sentence about another source or endpoint, or with another error, is news. */
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

/** Lines of one level and sentence that a process writes per window, and as many again about subjects that had none yet. */
export interface LogLimit {
  readonly lines: number;
  readonly windowMs: number;
}

/** Sentences beyond this number share one limit. */
const SENTENCES_MAX = 500;
const OTHERS = 'Lines of many kinds';

/**
 * Limits repeated lines, so that a frequent event cannot fill the disk. Returns a function that says whether one more line of this level and
 * sentence, about this subject, may be written. `tell` writes how many were left out, when the window or the process ends.
 */
function limitLines<Level extends string>(
  { lines, windowMs }: LogLimit,
  tell: (level: Level, sentence: string, leftOut: number) => void,
): (level: Level, sentence: string, subject: string) => boolean {
  const counts = new Map<string, { level: Level; sentence: string; subjects: Set<string>; written: number; leftOut: number }>();
  const closeWindow = () => {
    process.off('exit', closeWindow);
    for (const { level, sentence, leftOut } of counts.values()) if (leftOut > 0) tell(level, sentence, leftOut);
    counts.clear();
  };
  return (level, sentence, subject) => {
    if (counts.size === 0) setTimeout(closeWindow, windowMs).unref();
    const known = counts.has(`${level} ${sentence}`) || counts.size < SENTENCES_MAX;
    const counted = known ? sentence : OTHERS;
    const key = `${level} ${counted}`;
    let count = counts.get(key);
    if (!count) counts.set(key, (count = { level, sentence: counted, subjects: new Set(), written: 0, leftOut: 0 }));
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
