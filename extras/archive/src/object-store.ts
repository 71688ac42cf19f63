import { GatewayError } from '@gateway/core/errors';

/**
 * A bucket or a folder. Keys are paths with slashes. Methods throw `archive_unavailable` if the
 * store cannot be used.
 */
export interface ObjectStore {
  /** The URL or path of the store, for messages. */
  readonly place: string;
  /** Writes an object, or replaces it. Readers see all of it, or what was there before. */
  put(key: string, body: Uint8Array): Promise<void>;
  /** Reads an object. Returns undefined if there is none. */
  get(key: string): Promise<Uint8Array | undefined>;
  /** Names of direct subfolders, sorted. `folder` is '' or ends in '/'. */
  folders(folder: string): Promise<string[]>;
  close(): void;
}

/** With the fix for its cause. */
export function unavailable(
  place: string,
  reason: string,
  { fix, cause }: { readonly fix: string | undefined; readonly cause: unknown },
): GatewayError {
  return new GatewayError('archive_unavailable', { place, reason, fix }, { cause });
}
