import type { Labels, Metrics, Series } from '@gateway/plugin';
import { settings } from '../config/settings.js';
import type { Log } from '../logging/log.js';
import { LabelCardinality, isUnbounded } from './label-cardinality.js';
import { series, type SeriesLabels, type SeriesName } from './series.js';

/** Without a backend, records nothing. */
export interface Meter {
  add<Name extends SeriesName>(name: Name, labels: SeriesLabels<Name>, amount?: number): void;
  /** If the gauge's label sets may be folded, `clear` it before each sample. */
  set<Name extends SeriesName>(name: Name, labels: SeriesLabels<Name>, value: number): void;
  /** In the unit of the series. */
  observe<Name extends SeriesName>(name: Name, labels: SeriesLabels<Name>, value: number): void;
  /**
   * Set the gauge's next sample in the same turn of the event loop, so that no exposition lacks it.
   * @param folded the number of label sets already folded in the sample
   */
  clear(name: SeriesName, folded?: number): void;
  /**
   * The collector sets gauges before every exposition, until the returned function is called.
   * Gauges that need I/O are sampled at intervals instead.
   */
  collect(read: GaugeCollector): () => void;
  /** In the backend's format. Concurrent calls share one exposition. */
  expose(): Promise<Exposition>;
}

export interface Exposition {
  readonly contentType: string;
  readonly body: string;
}

interface MeterOptions {
  readonly absence?: string;
  readonly labelSetsMax?: number;
  readonly collectors?: Collectors;
}

/** Without a backend, it records nothing, and `expose` returns the reason as a comment. */
export function createMeter(backend: Metrics | undefined, options: MeterOptions = {}): Meter {
  const { absence = '', labelSetsMax = settings['metrics.max_label_sets'].default } = options;
  if (!backend) return silentMeter(absence);
  const { collectors = createCollectors({ warn: () => undefined }) } = options;
  const rows: readonly (readonly [string, Series])[] = Object.entries(series);
  const cardinalities = new Map(
    rows
      .filter(([, row]) => isUnbounded(row))
      .map(([name, row]) => [
        name,
        new LabelCardinality(row, labelSetsMax, (hidden) =>
          backend.set('gateway_metrics_folded', { series: name }, hidden),
        ),
      ]),
  );
  const placeOf = (name: string, labels: Labels) =>
    cardinalities.get(name)?.place(labels) ?? labels;
  let exposing: Promise<Exposition> | undefined;
  const expose = async () => {
    await collectors.run();
    return backend.expose();
  };
  return {
    add: (name, labels, amount = 1) => backend.add(name, placeOf(name, labels), amount),
    observe: (name, labels, value) => backend.observe(name, placeOf(name, labels), value),
    set(name, labels, value) {
      const shown = cardinalities.get(name)?.put(labels, value) ?? { labels, value };
      backend.set(name, shown.labels, shown.value);
    },
    clear(name, folded = 0) {
      cardinalities.get(name)?.restart(folded);
      backend.clear(name);
    },
    collect: (read) => collectors.add(read),
    expose: () => (exposing ??= expose().finally(() => (exposing = undefined))),
  };
}

function silentMeter(absence: string): Meter {
  const nothing = () => undefined;
  return {
    add: nothing,
    set: nothing,
    observe: nothing,
    clear: nothing,
    collect: () => nothing,
    expose: () =>
      Promise.resolve({
        contentType: 'text/plain; version=0.0.4; charset=utf-8',
        body: `# no metrics: ${absence || 'none selected'}\n`,
      }),
  };
}

type GaugeCollector = () => void | Promise<void>;

export type Collectors = ReturnType<typeof createCollectors>;

/**
 * A failing collector leaves its series unchanged, and only the first of consecutive failures is
 * logged.
 */
export function createCollectors(log: Pick<Log, 'warn'>) {
  const collectors = new Set<() => Promise<void>>();
  return {
    add(read: GaugeCollector): () => void {
      let failing = false;
      const guarded = async () => {
        try {
          await read();
          failing = false;
        } catch (error) {
          if (!failing)
            log.warn({ error }, 'Could not read current metrics; showing the last values.');
          failing = true;
        }
      };
      collectors.add(guarded);
      return () => void collectors.delete(guarded);
    },
    /** Never rejects. */
    run: async () => void (await Promise.all([...collectors].map((read) => read()))),
  };
}

/**
 * Outcomes of messages or API events. Updates all counters synchronously, so that the total always
 * equals the sum of its parts.
 */
export function countIngest(
  meter: Meter,
  labels: { readonly project: string; readonly source: string },
  counts: Readonly<Partial<Record<'accepted' | 'duplicate' | 'dropped' | 'failed', number>>>,
): void {
  const { accepted = 0, duplicate = 0, dropped = 0, failed = 0 } = counts;
  const success = accepted + duplicate + dropped;
  meter.add('gateway_ingest_total', labels, success + failed);
  // Add zeros too, because otherwise the error rate would be missing instead of 0.
  meter.add('gateway_ingest_success', labels, success);
  meter.add('gateway_ingest_error', labels, failed);
  if (duplicate > 0) meter.add('gateway_ingest_duplicate_total', labels, duplicate);
  if (dropped > 0) meter.add('gateway_ingest_dropped_total', labels, dropped);
}
