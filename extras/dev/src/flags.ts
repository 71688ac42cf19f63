import type { FlagValues } from '@gateway/core/config';
import { wrongUse } from '@gateway/cli/app/flag-values';

export interface KafkaTopic {
  readonly brokers: readonly string[];
  readonly name: string;
}

/**
 * Parses `host:port/topic`, or `host:port,host:port/topic` for several brokers. Throws `wrong_use`
 * for any other string.
 */
export function parseTopic(text: string): KafkaTopic {
  const [, brokers = '', name = ''] = /^([^/\s]+)\/([A-Za-z0-9._-]{1,249})$/.exec(text) ?? [];
  const list = brokers.split(',');
  if (name && list.every((broker) => /^[^:/\s[\]]+:\d{1,5}$/.test(broker)))
    return { brokers: list, name };
  throw wrongUse(
    `--kafka must be host:port/topic, not "${text}"`,
    'write it as in --kafka localhost:9092/orders',
  );
}

/**
 * Parses a port, which may be 0, or returns undefined if omitted. Throws `wrong_use` for any other
 * value.
 */
export function parsePort(flag: string, given: FlagValues[string]): number | undefined {
  if (given === undefined) return undefined;
  const text = typeof given === 'string' ? given : '';
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw wrongUse(
    `${flag} must be a port, not "${text}"`,
    'use a number from 0 (any free port) to 65535',
  );
}
