import type { Message } from './source.js';

/**
 * Bytes that a reader (a member of a consumer group, a poller of a queue) may have handed over and unsettled before it stops reading, beside `context.window`: while
 * Postgres is away, a window of large messages would be a gigabyte.
 */
export const IN_FLIGHT_BYTES = 16 * 1024 * 1024;

/** What a message holds of memory until it settles, in bytes. */
export function messageBytes({ body, headers }: Pick<Message, 'body' | 'headers'>): number {
  let bytes = body.byteLength;
  for (const name in headers) bytes += name.length + (headers[name]?.length ?? 0);
  return bytes;
}
