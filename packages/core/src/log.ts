import { hostname } from 'node:os';
import { pino, type Logger } from 'pino';
import type { PluginLog } from '@gateway/plugin';
import { limitLines, type LogLimit } from './log-limit.js';
import { loggable } from './redaction.js';

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
 * @param limit lines of one sentence above debug; those beyond it are written at debug, and counted in a line when the window is over
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
  const options = {
    level,
    base: { process: name, pid: process.pid, hostname: hostname() },
    messageKey: 'message',
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }), log: loggable },
  };
  const logger = pino(options, destination ?? pino.destination({ fd: 2, sync: true }));
  const base = environment === undefined ? logger : logger.child({ environment });
  const may = limitLines<LimitedLevel>(limit, (at, sentence, leftOut) =>
    base[at]({ left_out: leftOut, like: sentence }, 'Lines like many others were left out; logger.level debug writes each.'),
  );
  return logOf(base, may);
}

type LimitedLevel = 'info' | 'warn' | 'error';

/** pino takes the fields of a child as they are; secrets have to leave them too. */
function logOf(logger: Logger, may: (level: LimitedLevel, sentence: string) => boolean): Log {
  const limited = (level: LimitedLevel) => {
    if (!logger.isLevelEnabled(level)) return () => undefined;
    return (fields: object, sentence: string) => logger[may(level, sentence) ? level : 'debug'](fields, sentence);
  };
  return {
    debugging: logger.isLevelEnabled('debug'),
    debug: logger.debug.bind(logger),
    info: limited('info'),
    warn: limited('warn'),
    error: limited('error'),
    child: (fields) => logOf(logger.child(loggable({ ...fields })), may),
  };
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
