import type { FlagValues } from '@gateway/core/config';
import { wrongUse } from '../app/flag-values.js';

/** An error of `gateway dev`, which prints its sentence and fix, and exits with 1. */
export class DevError extends Error {
  override readonly name = 'DevError';
  readonly fix: string;

  constructor(sentence: string, fix: string, cause?: unknown) {
    super(sentence, { cause });
    this.fix = fix;
  }
}

export interface KafkaTopic {
  readonly brokers: readonly string[];
  readonly name: string;
}

/**
 * Settings that flags and environment variables cannot change. Otherwise a variable for a
 * production database would make `gateway dev` migrate that database.
 */
const FIXED =
  /^(encryption_key|root_path|database\..+|kv\..+|server\.(http|auth)\..+|(delivery|source)\.allowed_networks)$/;

/** Whether `gateway dev` itself sets the setting with this key. */
export function isFixed(key: string): boolean {
  return FIXED.test(key);
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
