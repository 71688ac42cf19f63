import { hash, randomFillSync } from 'node:crypto';

/**
 * Ids of events and event deliveries are derived from what must be unique, so that the primary key refuses duplicates
 * (docs/decisions/0003-ids-from-what-must-be-unique.md). A UUID (RFC 9562) has 48 bits of milliseconds, version, variant, and 74 bits of SHA-256 (version 8) or
 * random bits (version 7).
 */
function uuidOf(timeMs: number, version: 7 | 8, hex: string): string {
  const time = Math.trunc(timeMs).toString(16).padStart(12, '0');
  const variant = ((parseInt(hex.charAt(3), 16) & 0x3) | 0x8).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}${hex.slice(0, 3)}-${variant}${hex.slice(4, 7)}-${hex.slice(7, 19)}`;
}

/** The year 2200: beyond it Postgres would not keep milliseconds exactly. */
const LARGEST_TIME_MS = Date.UTC(2200, 0, 1);

/** In milliseconds. The first time of 13 digits, of 2001, excludes seconds; what is further ahead excludes microseconds and wrong clocks. */
const EARLIEST_TIME_MS = 1e12;
const AHEAD_MS_MAX = 86_400_000;

/** True if a message can have this time, in epoch milliseconds: it is present, in the right unit, and at most a day ahead of `nowMs`. */
export function isPossibleTime(timeMs: number, nowMs: number): boolean {
  return timeMs >= EARLIEST_TIME_MS && timeMs <= nowMs + AHEAD_MS_MAX;
}

/** The time of a message for ids and partitions, in epoch milliseconds: brokers may set -1 or nonsense. */
export function clampTime(timeMs: number): number {
  return Number.isFinite(timeMs) ? Math.min(Math.max(0, Math.trunc(timeMs)), LARGEST_TIME_MS) : 0;
}

/**
 * Id of the event of a message with this clamped time; `ordinal`: which of the events that a transform made of the message.
 * @param digest of the message, only when another message has the id that it would have without
 */
export function eventId(sourceId: string, coordinates: string, timeMs: number, ordinal = 0, digest?: string): string {
  const of = `${sourceId}\n${coordinates}\n${ordinal}`;
  return uuidOf(timeMs, 8, hash('sha256', digest === undefined ? of : `${of}\n${digest}`));
}

/** 64 bits of the SHA-256 of a message in hex: whether it is the one that came before with the same coordinates and time. */
export function messageDigest(body: Uint8Array): string {
  return hash('sha256', body).slice(0, 16);
}

/** Id of the delivery of an event to an endpoint by a subscription (empty: the message named the endpoint). */
export function eventDeliveryId(eventId: string, endpointId: string, subscriptionId: string | null): string {
  return uuidOf(timeOfId(eventId), 8, hash('sha256', `${eventId}\n${endpointId}\n${subscriptionId ?? ''}`));
}

/** The milliseconds at the start of an id: the `occurred_at` of its row, which decides the partition. */
export function timeOfId(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** True for a lower-case UUID, the form of every id. */
export function isId(text: string): boolean {
  return UUID.test(text);
}

const randomBytes = Buffer.alloc(8192);
let randomOffset = randomBytes.length;

/** Ids of one millisecond count up from a random number of 41 bits, in random steps of up to 20 bits. */
const FIRST = 2 ** 41;
const STEP = 2 ** 20;
const LAST = 2 ** 42 - STEP;
let lastMs = NaN;
let sequence = 0;

/** A new id: UUID version 7 (RFC 9562). Ids sort by time, and ids of one process and millisecond by creation. Random bytes are drawn in blocks. */
export function newId(timeMs = Date.now()): string {
  if (randomOffset + 10 > randomBytes.length) {
    randomFillSync(randomBytes);
    randomOffset = 0;
  }
  const random = randomBytes.readUIntBE(randomOffset, 6);
  sequence = timeMs === lastMs && sequence < LAST ? sequence + 1 + (random % STEP) : random % FIRST;
  lastMs = timeMs;
  const tail = randomBytes.toString('hex', randomOffset + 6, (randomOffset += 10));
  // 12 bits before the variant, 2 bits beside it, 28 bits behind it.
  const [high, middle, low] = [Math.floor(sequence / 2 ** 30), Math.floor(sequence / 2 ** 28) % 4, sequence % 2 ** 28];
  return uuidOf(timeMs, 7, `${hexOf(high, 3)}${middle}${hexOf(low, 7)}${tail}`);
}

function hexOf(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
