import { pino, type Logger } from 'pino';
import type { PluginLog } from '@gateway/plugin';
import { loggable } from './redaction.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/**
 * A structured log: JSON lines, the fields first, then the sentence. Nothing per event above debug; `warn` is unexpected but recovered;
 * `error` means that data is lost or a person is needed.
 */
export interface Log extends PluginLog {
  /** A log that adds these fields to every line. */
  child(fields: object): Log;
}

/**
 * @param name the process: `gateway-server`, `gateway-agent`
 * @param environment name of the environment (`env`), which every line then carries
 * @param destination where the lines go; standard error without one, because standard output belongs to the answers of commands
 */
export function createLog({
  level,
  name,
  environment,
  destination,
}: {
  level: LogLevel;
  name: string;
  environment?: string;
  destination?: { write(line: string): void };
}): Log {
  const options = {
    level,
    name,
    messageKey: 'message',
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }), log: loggable },
  };
  const logger = pino(options, destination ?? pino.destination({ fd: 2, sync: true }));
  return logOf(environment === undefined ? logger : logger.child({ environment }));
}

/** pino takes the fields of a child as they are; secrets have to leave them too. */
function logOf(logger: Logger): Log {
  return {
    debug: logger.debug.bind(logger),
    info: logger.info.bind(logger),
    warn: logger.warn.bind(logger),
    error: logger.error.bind(logger),
    child: (fields) => logOf(logger.child(loggable({ ...fields }))),
  };
}

/** A log that says nothing. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};
