import { isObject } from '@gateway/core/json';

/**
 * Releases share KV during an upgrade, so raise the version of a kind when its value changes in
 * shape or meaning: values of other versions are treated as missing. The tests record the shape of
 * each version. Keys stay the same, so that a process of any release can mark its changes.
 *
 * A `signal` names an event in a queue; reconciliation finds the events of unreadable ones. A
 * `record` authenticates requests. Releases before versioning wrote version 1, which is readable
 * for every kind except `record` and `source-state`.
 */
export const KV_VERSIONS = {
  breaker: 1,
  'source-lag': 1,
  'source-state': 2,
  signal: 1,
  record: 3,
} as const;

export type KvKind = keyof typeof KV_VERSIONS;

export function encodeValue(kind: KvKind, value: object): string {
  return JSON.stringify({ v: KV_VERSIONS[kind], ...value });
}

/** Undefined if this release cannot read it. */
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
