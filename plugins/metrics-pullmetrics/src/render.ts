import { setImmediate } from 'node:timers/promises';
import { isAscii } from 'node:buffer';
import type { Counter, Gauge, Histogram } from 'prom-client';
import type { Labels, Series } from '@gateway/plugin';

export type Metric = Counter | Gauge | Histogram;

/**
 * An entry of prom-client's private `hashMap`, which has one per label set. The public `get()`
 * creates an object per line in one turn. For a histogram with 1,000 label sets, that takes 15 ms,
 * longer than a whole exposition with the private map. So package.json pins prom-client, and the
 * test "the text is that of prom-client, to the byte" fails if another version stores values
 * elsewhere.
 */
interface StoredValue {
  readonly labels: Labels;
  readonly value: number;
}
interface StoredHistogram {
  readonly labels: Labels;
  readonly bucketValues: Readonly<Record<string, number>>;
  readonly sum: number;
  readonly count: number;
}

interface Lines {
  readonly head: Buffer;
  /** The name and, if any, the bucket bound of each line of a label set. */
  readonly starts: readonly { readonly name: string; readonly le?: string }[];
  /**
   * The lines up to their values, by prom-client's key. Kept between renderings, because sampled
   * gauges always have the same label sets.
   */
  beginnings: Map<string, readonly Uint8Array[]>;
}

interface Snapshot {
  readonly lines: Lines;
  readonly keys: readonly string[];
  readonly labels: readonly Labels[];
  /** One per line of each label set. */
  readonly values: Float64Array;
}

/** Rendering then yields to the event loop. */
const SLICE_MS = 1;
/** Label sets rendered between two checks of the clock. */
const AT_ONCE = 10;
const BLANK_LINE = Buffer.from('\n');

/** Yields to the event loop, but all values are from the same moment. */
export function renderer(
  metrics: ReadonlyMap<string, Metric>,
  series: Readonly<Record<string, Series>>,
): () => Promise<string> {
  const shown = [...metrics].map(([name, metric]) => ({
    metric,
    lines: linesOf(name, series[name]!),
  }));
  // Reuse the buffer: allocating 3 MB takes longer than filling it. A concurrent rendering
  // allocates another.
  let spare: Text | undefined;
  return async () => {
    let turn = performance.now();
    const snapshots = shown.map(({ metric, lines }) => snapshot(metric, lines));
    const text = spare ?? new Text();
    spare = undefined;
    for (const [at, taken] of snapshots.entries()) {
      if (at > 0) text.append(BLANK_LINE);
      text.append(taken.lines.head);
      for (let from = 0; from < taken.keys.length; from += AT_ONCE) {
        render(text, taken, from, Math.min(from + AT_ONCE, taken.keys.length));
        if (performance.now() - turn < SLICE_MS) continue;
        await setImmediate();
        turn = performance.now();
      }
      forgetUnused(taken);
    }
    await setImmediate();
    spare = text;
    return text.take();
  };
}

function linesOf(name: string, { type, help, buckets = [] }: Series): Lines {
  const head = Buffer.from(`# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n`);
  if (type !== 'histogram') return { head, starts: [{ name }], beginnings: new Map() };
  const bounds = [...buckets.map(String), '+Inf'].map((le) => ({ name: `${name}_bucket`, le }));
  return {
    head,
    starts: [...bounds, { name: `${name}_sum` }, { name: `${name}_count` }],
    beginnings: new Map(),
  };
}

function snapshot(metric: Metric, lines: Lines): Snapshot {
  const { hashMap } = metric as Metric & {
    readonly hashMap: Readonly<Record<string, StoredValue | StoredHistogram>>;
  };
  const keys = Object.keys(hashMap);
  const { starts } = lines;
  const values = new Float64Array(keys.length * starts.length);
  const labels = keys.map((key, at) => {
    const kept = hashMap[key]!;
    if ('bucketValues' in kept) putHistogram(values, at * starts.length, kept, starts);
    else values[at] = kept.value;
    return kept.labels;
  });
  return { lines, keys, labels, values };
}

/** One value per line. Buckets are cumulative, so the last one, +Inf, equals the count. */
function putHistogram(
  values: Float64Array,
  from: number,
  { bucketValues, sum, count }: StoredHistogram,
  starts: Lines['starts'],
): void {
  const last = starts.length - 3;
  let below = 0;
  for (let at = 0; at < last; at++) values[from + at] = below += bucketValues[starts[at]!.le!]!;
  values[from + last] = count;
  values[from + last + 1] = sum;
  values[from + last + 2] = count;
}

function render(
  text: Text,
  { lines, keys, labels, values }: Snapshot,
  from: number,
  to: number,
): void {
  for (let at = from; at < to; at++) {
    const beginnings = beginningsOf(lines, keys[at]!, labels[at]!);
    for (let line = 0; line < beginnings.length; line++) {
      text.append(beginnings[line]!);
      text.appendNumber(values[at * beginnings.length + line]!);
    }
  }
}

function beginningsOf(
  { starts, beginnings }: Lines,
  key: string,
  labels: Labels,
): readonly Uint8Array[] {
  const known = beginnings.get(key);
  if (known) return known;
  const given = Object.entries(labels).map(
    ([name, value]) => `${name}="${escaped(String(value)).replaceAll('"', '\\"')}"`,
  );
  const made = starts.map(({ name, le }) => {
    const all = [...(le === undefined ? [] : [`le="${le}"`]), ...given].join(',');
    return Buffer.from(`${name}${all === '' ? '' : `{${all}}`} `);
  });
  beginnings.set(key, made);
  return made;
}

/** Only once removed label sets are the majority. */
function forgetUnused({ lines, keys }: Snapshot): void {
  if (lines.beginnings.size <= 2 * keys.length) return;
  lines.beginnings = new Map(keys.map((key) => [key, lines.beginnings.get(key)!]));
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

const BYTES = 16_384;
const NEW_LINE = 10;
const ZERO = 48;
/** Larger integers are rare and formatted like other numbers. */
const INTEGER_MAX = 2 ** 31 - 1;
const NUMBER_BYTES_MAX = 32;

/**
 * A growing string, kept as bytes, because garbage-collecting a hundred thousand concatenated
 * strings costs more than creating them.
 */
class Text {
  #bytes = Buffer.allocUnsafe(BYTES);
  #length = 0;

  take(): string {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    // The text is usually ASCII, which Latin-1 decodes in a fraction of the time.
    return taken.toString(isAscii(taken) ? 'latin1' : 'utf8');
  }

  append(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  appendNumber(value: number): void {
    this.#reserve(NUMBER_BYTES_MAX);
    if (value >= 0 && value <= INTEGER_MAX && Number.isInteger(value)) this.#appendInteger(value);
    else this.#length += this.#bytes.write(numberText(value), this.#length, 'latin1');
    this.#bytes[this.#length++] = NEW_LINE;
  }

  #appendInteger(value: number): void {
    let digits = 1;
    for (let rest = value; rest >= 10; rest = (rest / 10) | 0) digits++;
    let rest = value;
    for (let at = this.#length + digits - 1; at >= this.#length; at--) {
      const next = (rest / 10) | 0;
      this.#bytes[at] = ZERO + rest - next * 10;
      rest = next;
    }
    this.#length += digits;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * this.#bytes.length + bytes);
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

function numberText(value: number): string {
  return Number.isFinite(value) || Number.isNaN(value)
    ? String(value)
    : value > 0
      ? '+Inf'
      : '-Inf';
}
