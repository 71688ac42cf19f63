import type { Logical } from './schema.js';

const DAY_MS = 86_400_000;
/** ISO 8601 writes years with four digits. */
const MS_MIN = Date.parse('0000-01-01T00:00:00Z');
const MS_MAX = Date.parse('9999-12-31T23:59:59.999Z');
/** Digits of a second, by the end of the name. */
const DIGITS: Readonly<Record<string, number>> = { millis: 3, micros: 6, nanos: 9 };

/**
 * JSON text of a value with a logical type. Undefined without one, and for a value outside its range,
 * which is written as the type below it.
 */
export function logicalText(
  logical: Logical | undefined,
  value: number | bigint | Uint8Array,
  { numbers }: { readonly numbers: 'strings' | 'exact' },
): string | undefined {
  if (!logical) return undefined;
  const { name, scale } = logical;
  if (value instanceof Uint8Array) {
    if (name === 'decimal') {
      const text = decimal(value, scale);
      return numbers === 'exact' ? text : `"${text}"`;
    }
    if (name === 'uuid' && value.length === 16) return `"${uuid(value)}"`;
    if (name === 'duration' && value.length === 12) return `"${duration(value)}"`;
    return undefined;
  }
  if (name === 'date') return dateOf(Number(value));
  const [, kind = '', unit = ''] = /^((?:local-)?timestamp|time)-(\w+)$/.exec(name) ?? [];
  const digits = DIGITS[unit];
  if (digits === undefined) return undefined;
  const text = instant(BigInt(value), digits);
  if (text === undefined) return undefined;
  if (kind !== 'time') return `"${text}${kind === 'timestamp' ? 'Z' : ''}"`;
  return text.startsWith('1970-01-01T') ? `"${text.slice(11)}"` : undefined;
}

/** Two's complement, the most significant byte first. */
function decimal(bytes: Uint8Array, scale: number): string {
  const unsigned = bytes.length === 0 ? 0n : BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
  const value = BigInt.asIntN(bytes.length * 8, unsigned);
  const sign = value < 0n ? '-' : '';
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0');
  return scale === 0
    ? `${sign}${digits}`
    : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

function dateOf(days: number): string | undefined {
  const ms = days * DAY_MS;
  return isInRange(ms) ? `"${new Date(ms).toISOString().slice(0, 10)}"` : undefined;
}

/** Since 1970, in ISO 8601 with this many digits, without a zone. */
function instant(value: bigint, digits: number): string | undefined {
  const perSecond = 10n ** BigInt(digits);
  const fraction = ((value % perSecond) + perSecond) % perSecond;
  const ms = Number((value - fraction) / perSecond) * 1_000;
  if (!isInRange(ms)) return undefined;
  return `${new Date(ms).toISOString().slice(0, 19)}.${String(fraction).padStart(digits, '0')}`;
}

function isInRange(ms: number): boolean {
  return ms >= MS_MIN && ms <= MS_MAX;
}

function uuid(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Months, days and milliseconds, each an unsigned integer. */
function duration({ buffer, byteOffset }: Uint8Array): string {
  const view = new DataView(buffer, byteOffset, 12);
  const ms = view.getUint32(8, true);
  const seconds = `${Math.floor(ms / 1_000)}.${String(ms % 1_000).padStart(3, '0')}`;
  return `P${view.getUint32(0, true)}M${view.getUint32(4, true)}DT${seconds}S`;
}
