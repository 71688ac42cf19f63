import type { PluginLog } from '@gateway/plugin';
import { logLevel, type logCreator } from 'kafkajs';

/** Fields of kafkajs' own log lines that tell where something happened. Everything else (requests, responses, stacks) stays out. */
const FIELDS = ['broker', 'groupId', 'memberId', 'topic', 'partition', 'retryCount', 'retryTime'] as const;

/**
 * Sends the log of kafkajs to the log of the gateway. What kafkajs calls an error is something it retries or that makes `run` reject, so it is a warning here;
 * what it calls a warning is a rebalance.
 *
 * @param wanted asked for every line: connections that are cut complain about it
 */
export function logTo(log: PluginLog, wanted: () => boolean): logCreator {
  return () => (entry) => {
    if (!wanted()) return;
    const fields: Record<string, unknown> = {};
    for (const name of FIELDS) if (entry.log[name] !== undefined) fields[name] = entry.log[name];
    if (typeof entry.log['error'] === 'string') fields['reason'] = entry.log['error'];
    const sentence = `kafkajs ${entry.namespace}: ${entry.log.message}`;
    if (entry.level === logLevel.ERROR) log.warn(fields, sentence);
    else log.debug(fields, sentence);
  };
}

/** For those who tell in one sentence of their own what failed. */
export const silent: logCreator = () => () => {};
