import { hash, randomFillSync } from 'node:crypto';

/**
 * A UUID (RFC 9562) from 48 bits of epoch milliseconds and 74 bits of SHA-256 (version 8) or random
 * bits (version 7). Event and delivery ids are derived from their unique attributes, so the primary
 * key rejects duplicates (docs/decisions/0003-ids-from-what-must-be-unique.md).
 */
function uuidOf(timeMs: number, version: 7 | 8, hex: string): string {
  const time = Math.trunc(timeMs).toString(16).padStart(12, '0');
  const variant = ((parseInt(hex.charAt(3), 16) & 0x3) | 0x8).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}${hex.slice(0, 3)}-${variant}${hex.slice(4, 7)}-${hex.slice(7, 19)}`;
}

/** Postgres does not store milliseconds exactly after 2200. */
const LARGEST_TIME_MS = Date.UTC(2200, 0, 1);

/**
 * The lower bound, in 2001 (13 digits), excludes times in seconds. The upper bound, a day in the
 * future, excludes times in microseconds and wrong clocks.
 */
const EARLIEST_TIME_MS = 1e12;
const AHEAD_MS_MAX = 86_400_000;

/** In milliseconds, and at most a day in the future. False for NaN. */
export function isPossibleTime(timeMs: number, nowMs: number): boolean {
  return timeMs >= EARLIEST_TIME_MS && timeMs <= nowMs + AHEAD_MS_MAX;
}

/** In epoch milliseconds. Brokers may send -1 or garbage. */
export function clampTime(timeMs: number): number {
  return Number.isFinite(timeMs) ? Math.min(Math.max(0, Math.trunc(timeMs)), LARGEST_TIME_MS) : 0;
}

/**
 * @param timeMs the clamped message time, in epoch milliseconds
 * @param ordinal the index of the event among those of the message
 * @param digest given only if another message would have the same id
 */
export function eventId(
  sourceId: string,
  coordinates: string,
  timeMs: number,
  ordinal = 0,
  digest?: string,
): string {
  const of = `${sourceId}\n${coordinates}\n${ordinal}`;
  return uuidOf(timeMs, 8, hash('sha256', digest === undefined ? of : `${of}\n${digest}`));
}

/**
 * 64 bits of the body's SHA-256 in hex, to tell a redelivery from another message with the same
 * coordinates and time.
 */
export function messageDigest(body: Uint8Array): string {
  return hash('sha256', body).slice(0, 16);
}

/** `subscriptionId` is null if the message named the endpoint. */
export function eventDeliveryId(
  eventId: string,
  endpointId: string,
  subscriptionId: string | null,
): string {
  return uuidOf(
    timeOfId(eventId),
    8,
    hash('sha256', `${eventId}\n${endpointId}\n${subscriptionId ?? ''}`),
  );
}

/** Epoch milliseconds. They equal `occurred_at`, which determines the partition. */
export function timeOfId(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** A lower-case UUID, the form of every id. */
export function isId(text: string): boolean {
  return UUID.test(text);
}

const randomBytes = Buffer.alloc(8192);
let randomOffset = randomBytes.length;

/**
 * The first sequence number of a millisecond has 41 random bits. Each consecutive one is larger by
 * up to 20 random bits, so that ids increase.
 */
const FIRST = 2 ** 41;
const STEP = 2 ** 20;
const LAST = 2 ** 42 - STEP;
let lastMs = NaN;
let sequence = 0;

/**
 * UUID version 7. Ids sort by time and, within one process and millisecond, by order of creation.
 * Random bytes are drawn in blocks.
 */
export function newId(timeMs = Date.now()): string {
  if (randomOffset + 10 > randomBytes.length) {
    randomFillSync(randomBytes);
    randomOffset = 0;
  }
  const random = randomBytes.readUIntBE(randomOffset, 6);
  sequence = timeMs === lastMs && sequence < LAST ? sequence + 1 + (random % STEP) : random % FIRST;
  lastMs = timeMs;
  const tail = randomBytes.toString('hex', randomOffset + 6, (randomOffset += 10));
  // The sequence has 12 bits before the variant, 2 in the same digit and 28 after it.
  const [high, middle, low] = [
    Math.floor(sequence / 2 ** 30),
    Math.floor(sequence / 2 ** 28) % 4,
    sequence % 2 ** 28,
  ];
  return uuidOf(timeMs, 7, `${hexOf(high, 3)}${middle}${hexOf(low, 7)}${tail}`);
}

function hexOf(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
