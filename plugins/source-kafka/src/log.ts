import type { PluginLog } from '@gateway/plugin';
import { logLevel, type logCreator } from 'kafkajs';

/** Fields of kafkajs' log lines that say where something happened. Everything else (requests, responses, stacks) is dropped. */
const FIELDS = ['broker', 'groupId', 'memberId', 'topic', 'partition', 'retryCount', 'retryTime'] as const;

/**
 * Sends the log of kafkajs to that of the gateway. An error of kafkajs is retried or makes `run` reject, so it is a warning here; a warning of kafkajs is a
 * rebalance.
 * @param wanted called for every line: connections that are destroyed complain
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

export const silent: logCreator = () => () => {};
