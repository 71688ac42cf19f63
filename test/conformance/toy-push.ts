import http from 'node:http';
import { once } from 'node:events';
import type { Labels, Metrics, MetricsHost, MetricsPlugin, Series } from '@gateway/plugin';
import type { MetricsRig, Sample } from '@gateway/plugin-conformance';
import { loopback } from '../support/ports.js';

/** The replaceable parts of a push backend. */
export interface PushParts {
  readonly collects: boolean;
  readonly flushesAtClose: boolean;
}

interface Settings {
  readonly url: string;
}
interface Push extends Metrics {
  /** Pushes immediately, as its timer does. */
  flush(): Promise<void>;
}

/**
 * The part of OTLP over HTTP with JSON that counters, gauges and histograms need:
 * https://opentelemetry.io/docs/specs/otlp/#otlphttp
 */
interface Point {
  readonly attributes: readonly {
    readonly key: string;
    readonly value: { readonly stringValue: string };
  }[];
  readonly asDouble?: number;
  readonly sum?: number;
  readonly explicitBounds?: readonly number[];
  readonly bucketCounts?: readonly number[];
}
interface OtlpMetric {
  readonly name: string;
  readonly sum?: { readonly dataPoints: readonly Point[] };
  readonly gauge?: { readonly dataPoints: readonly Point[] };
  readonly histogram?: { readonly dataPoints: readonly Point[] };
}
interface Export {
  readonly resourceMetrics: readonly {
    readonly scopeMetrics: readonly { readonly metrics: readonly OtlpMetric[] }[];
  }[];
}

const PUSH_MS = 10_000;
const sound: PushParts = {
  collects: true,
  flushesAtClose: true,
};

/** A backend that pushes its series over the network like OTLP, with replaceable parts. */
export function pushingMetrics(otherwise: Partial<PushParts> = {}): MetricsPlugin<Settings> {
  const parts = { ...sound, ...otherwise };
  return {
    start: (series, settings, host) => Promise.resolve(backend(parts, series, settings, host)),
  };
}

/** Receives pushes; each start of a backend has a separate path. */
export async function pushRig(): Promise<MetricsRig<Settings>> {
  const received = new Map<string, Export>();
  const server = http.createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      received.set(request.url ?? '', JSON.parse(body) as Export);
      response.writeHead(200, { connection: 'close' }).end('{}');
    });
  });
  const port = await loopback(server);
  let starts = 0;
  return {
    settings: () => ({ url: `http://127.0.0.1:${port}/${++starts}/v1/metrics` }),
    read: async (metrics, { url }) => {
      await (metrics as Push).flush();
      const metricsOf = received.get(new URL(url).pathname)?.resourceMetrics ?? [];
      return metricsOf
        .flatMap(({ scopeMetrics }) => scopeMetrics)
        .flatMap(({ metrics: all }) => all.flatMap(samplesOf));
    },
    close: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}

function backend(
  parts: PushParts,
  series: Readonly<Record<string, Series>>,
  { url }: Settings,
  host: MetricsHost,
): Push {
  const points = new Map<string, { name: string; labels: Labels; values: number[] }>();
  const change = (
    name: string,
    type: Series['type'],
    labels: Labels,
    next: (before: number[]) => number[],
  ) => {
    if (series[name]?.type !== type) throw new Error(`${name} is not a ${type}`);
    const key = `${name} ${JSON.stringify(labels)}`;
    points.set(key, { name, labels, values: next(points.get(key)?.values ?? []) });
  };
  const send = async () => {
    if (parts.collects) await host.collect();
    const named = Object.entries(series).map(([name, row]) => {
      const dataPoints = [...points.values()]
        .filter((it) => it.name === name)
        .map((it) => pointOf(row, it));
      const kind = row.type === 'counter' ? 'sum' : row.type;
      return { name, [kind]: { dataPoints } };
    });
    await post(url, {
      resourceMetrics: [{ scopeMetrics: [{ metrics: named.filter(hasPoints) }] }],
    });
  };
  let closed = false;
  const timer = setInterval(() => void send(), PUSH_MS).unref();
  return {
    add: (name, labels, amount) =>
      change(name, 'counter', labels, ([before = 0]) => [before + amount]),
    set: (name, labels, value) => change(name, 'gauge', labels, () => [value]),
    observe: (name, labels, value) =>
      change(name, 'histogram', labels, (before) => [...before, value]),
    clear: (name) => {
      for (const [key, point] of points) if (point.name === name) points.delete(key);
    },
    expose: () => Promise.resolve({ contentType: 'text/plain', body: `# pushed to ${url}\n` }),
    flush: async () => {
      if (!closed) await send();
    },
    close: async () => {
      clearInterval(timer);
      if (!closed && parts.flushesAtClose) await send();
      closed = true;
    },
  };
}

function hasPoints({ sum, gauge, histogram }: OtlpMetric): boolean {
  return (sum ?? gauge ?? histogram)!.dataPoints.length > 0;
}

function pointOf(
  { type, buckets = [] }: Series,
  { labels, values }: { labels: Labels; values: readonly number[] },
): Point {
  const attributes = Object.entries(labels).map(([key, stringValue]) => ({
    key,
    value: { stringValue },
  }));
  if (type !== 'histogram') return { attributes, asDouble: values[0] ?? 0 };
  const bounds = [...buckets, Infinity];
  const bucketCounts = bounds.map(
    (bound, at) =>
      values.filter((value) => value <= bound && value > (bounds[at - 1] ?? -Infinity)).length,
  );
  return {
    attributes,
    sum: values.reduce((sum, value) => sum + value, 0),
    explicitBounds: buckets,
    bucketCounts,
  };
}

async function post(url: string, body: Export): Promise<void> {
  const request = http.request(url, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json' },
  });
  request.end(JSON.stringify(body));
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  response.resume();
  await once(response, 'close');
}

function samplesOf({ name, sum, gauge, histogram }: OtlpMetric): Sample[] {
  const labelsOf = ({ attributes }: Point): Labels =>
    Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]));
  return (sum ?? gauge ?? histogram)!.dataPoints.flatMap((point) => {
    const labels = labelsOf(point);
    if (!histogram) return [{ name, labels, value: point.asDouble ?? NaN }];
    let below = 0;
    const buckets = point.bucketCounts!.map((count, at) => {
      const le = String(point.explicitBounds![at] ?? '+Inf');
      return { name: `${name}_bucket`, labels: { ...labels, le }, value: (below += count) };
    });
    return [
      ...buckets,
      { name: `${name}_sum`, labels, value: point.sum! },
      { name: `${name}_count`, labels, value: below },
    ];
  });
}
