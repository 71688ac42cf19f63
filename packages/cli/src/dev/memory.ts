import { readPrivate, writePrivate } from './folder.js';

/** What `gateway dev` made, so that the next start finds it: `.gateway/dev.json`. */
export interface Memory {
  /** A personal key for the management API. */
  readonly api_key?: string;
  readonly user?: { readonly email: string; readonly password: string };
  readonly project_id?: string;
  readonly source_id?: string;
  readonly endpoint_id?: string;
  /** What the endpoint signs with, and the inbox verifies with. */
  readonly endpoint_secret?: string;
  readonly subscription_id?: string;
  /** The addresses that endpoint and source were given; when they have others by now, somebody has pointed them elsewhere. */
  readonly inbox_url?: string;
  readonly queue_endpoint?: string;
  /** Topic sources by topic name. */
  readonly topics?: Readonly<Record<string, string>>;
  /** Where the data of Postgres is, when it cannot be in the folder. */
  readonly postgres_home?: string;
}

/** Throws a `Problem` when the file is broken. */
export function readMemory(file: string): Memory {
  return readPrivate(file, 'start anew with --fresh, which deletes what is in the folder');
}

/** Adds to what is remembered, and returns all of it. */
export function remember(file: string, added: Memory): Memory {
  const memory = { ...readMemory(file), ...added };
  writePrivate(file, memory);
  return memory;
}
