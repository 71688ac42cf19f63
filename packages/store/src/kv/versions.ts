import { isObject } from '@gateway/core/json';

/**
 * The version of each kind of value in KV, which processes of two releases share during an upgrade.
 * Raise it when a value changes shape or meaning: other versions read as missing. The tests record
 * each version's shape. Keys do not change with the version: a process of any release can mark its
 * changes.
 *
 * `signal` names an event in a queue; reconciliation finds the events of unreadable signals.
 * `record` authenticates requests. Unversioned releases wrote version 1, readable for every kind
 * except `record`.
 */
export const KV_VERSIONS = {
  breaker: 1,
  'source-lag': 1,
  'source-state': 1,
  signal: 1,
  record: 2,
} as const;

export type KvKind = keyof typeof KV_VERSIONS;

/** Returns the JSON text of a value with its version. */
export function encodeValue(kind: KvKind, value: object): string {
  return JSON.stringify({ v: KV_VERSIONS[kind], ...value });
}

/** Returns the value, if this release can read it. */
export function decodeValue<Value extends object>(
  kind: KvKind,
  text: string | undefined,
): Value | undefined {
  if (text === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    if (!isObject(parsed)) return undefined;
    const { v = 1, ...value } = parsed;
    return v === KV_VERSIONS[kind] ? (value as Value) : undefined;
  } catch {
    return undefined;
  }
}
