import { hash, randomFillSync } from 'node:crypto';

/**
 * Ids of events and event deliveries are made from what must be unique, so the primary key alone refuses a repetition
 * (docs/decisions/0003-ids-from-what-must-be-unique.md). Layout of a UUID (RFC 9562): 48 bits of time in milliseconds, the version, the variant, and
 * 122 - 48 = 74 bits, which are SHA-256 in version 8 and random in version 7.
 */
function uuidOf(timeMs: number, version: 7 | 8, hex: string): string {
  const time = Math.trunc(timeMs).toString(16).padStart(12, '0');
  const variant = ((parseInt(hex.charAt(3), 16) & 0x3) | 0x8).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}${hex.slice(0, 3)}-${variant}${hex.slice(4, 7)}-${hex.slice(7, 19)}`;
}

/** The year 2200: beyond it a stamp is nonsense, and Postgres would no longer keep its milliseconds exactly. */
const LARGEST_TIME_MS = Date.UTC(2200, 0, 1);

/** The time of a message as ids and partitions use it, in epoch milliseconds: a broker may stamp a message with -1, or with nonsense. */
export function clampTime(timeMs: number): number {
  return Number.isFinite(timeMs) ? Math.min(Math.max(0, Math.trunc(timeMs)), LARGEST_TIME_MS) : 0;
}

/**
 * Id of the event of a message.
 *
 * @param timeMs the broker's time of the message, already clamped
 * @param ordinal which of the events that a transform made of the message, from 0
 */
export function eventId(sourceId: string, coordinates: string, timeMs: number, ordinal = 0): string {
  return uuidOf(timeMs, 8, hash('sha256', `${sourceId}\n${coordinates}\n${ordinal}`));
}

/** Id of the delivery of an event to an endpoint by a subscription (empty: the message named the endpoint). */
export function eventDeliveryId(eventId: string, endpointId: string, subscriptionId: string | null): string {
  return uuidOf(timeOfId(eventId), 8, hash('sha256', `${eventId}\n${endpointId}\n${subscriptionId ?? ''}`));
}

/** The milliseconds that an id begins with: the `occurred_at` of its row, and so its partition. */
export function timeOfId(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** True for the lower-case text form of a UUID, which is how every id is written. */
export function isId(text: string): boolean {
  return UUID.test(text);
}

const randomBytes = Buffer.alloc(8192);
let randomOffset = randomBytes.length;

/** New ids of one millisecond count on from a random number of 41 bits, in steps of up to 20. */
const FIRST = 2 ** 41;
const STEP = 2 ** 20;
const LAST = 2 ** 42 - STEP;
let lastMs = NaN;
let sequence = 0;

/**
 * A new id: UUID version 7 (RFC 9562). Ids sort by their times, and those that this process makes one after the other in one millisecond by their order.
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
  // 12 bits before the variant, 2 bits beside it, 28 bits behind it.
  const [high, middle, low] = [Math.floor(sequence / 2 ** 30), Math.floor(sequence / 2 ** 28) % 4, sequence % 2 ** 28];
  return uuidOf(timeMs, 7, `${hexOf(high, 3)}${middle}${hexOf(low, 7)}${tail}`);
}

function hexOf(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
