import { isObject } from '@gateway/core/json';

/**
 * The version of each kind of value in KV, where processes of two releases meet during an upgrade. Raise it when what is written changes its shape or its meaning:
 * a value of another version reads as none. The tests keep the shape of each beside its version. A key stays the same across versions, so that a process of any
 * release can mark what it changed.
 *
 * `signal` is the name of an event in a queue; one that cannot be read is dropped, since reconciliation finds its event. `record` is a record that authenticates
 * requests. Releases before versions wrote 1, except for records.
 */
export const KV_VERSIONS = { breaker: 1, 'source-lag': 1, 'source-state': 1, signal: 1, record: 2 } as const;

export type KvKind = keyof typeof KV_VERSIONS;

/** Returns the text of a value with its version. */
export function encodeValue(kind: KvKind, value: object): string {
  return JSON.stringify({ v: KV_VERSIONS[kind], ...value });
}

/** Returns the value, or undefined when there is none that this release can read. */
export function decodeValue<Value extends object>(kind: KvKind, text: string | undefined): Value | undefined {
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
