import crypto from 'node:crypto';
import { trace, type ProxyTracerProvider } from '@opentelemetry/api';
import * as assert from 'uvu/assert';
import { spans, type SpanRow } from '#core/tracing/spans';
import type { Collector, OtlpSpan } from '../support/otlp.js';
import { until } from '../support/until.js';

export interface Producer {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceparent: string;
}

export function producer({ sampled = true } = {}): Producer {
  const [traceId, spanId] = [
    crypto.randomBytes(16).toString('hex'),
    crypto.randomBytes(8).toString('hex'),
  ];
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-${sampled ? '01' : '00'}` };
}

/** The settings of a gateway that exports every trace, or this share of the traces it starts. */
export function tracedBy(to: Collector, sampleRate = 1) {
  return { type: 'otel', otel: { collector_url: `http://${to.address}`, sample_rate: sampleRate } };
}

/**
 * Waits until a trace has exactly these spans, and returns it; other spans that have arrived by
 * then are an error.
 */
export async function wholeTrace(
  to: Collector,
  traceId: string,
  names: readonly string[],
): Promise<readonly OtlpSpan[]> {
  const found = () => to.spans.filter((span) => span.traceId === traceId);
  const wanted = [...names].sort().join(', ');
  await until(`the spans ${wanted}`, () => found().length >= names.length).catch(
    (error: unknown) => {
      throw new Error(`${(error as Error).message}; there are: ${namesOf(found())}`, {
        cause: error,
      });
    },
  );
  assert.is(namesOf(found()), wanted);
  for (const span of found()) checkRow(span);
  return found();
}

/** Flushes this process' tracer `otel`. Returns everything received. */
export async function flushed(to: Collector): Promise<readonly OtlpSpan[]> {
  const provider = (trace.getTracerProvider() as ProxyTracerProvider).getDelegate() as {
    forceFlush?(): Promise<void>;
  };
  await provider.forceFlush?.();
  return to.spans;
}

/** The only span of this name. */
export function only(all: readonly OtlpSpan[], name: string): OtlpSpan {
  const found = all.filter((span) => span.name === name);
  assert.is(found.length, 1, `${found.length} spans ${name}`);
  return found[0]!;
}

/** Asserts that every span's parent has arrived too, or is a producer's. */
export function checkParents(all: readonly OtlpSpan[], remote: readonly string[] = []): void {
  const known = new Set([...all.map(({ spanId }) => spanId), ...remote]);
  for (const { name, parentSpanId } of all)
    assert.ok(
      parentSpanId === undefined || known.has(parentSpanId),
      `${name} stands under ${parentSpanId}, which never arrived`,
    );
}

function checkRow({ name, kind, attributes, startedAt, endedAt }: OtlpSpan): void {
  const row: SpanRow | undefined = (spans as Readonly<Record<string, SpanRow>>)[name];
  assert.ok(row, `${name} is not in the table of spans`);
  assert.is(kind, row.kind, name);
  const known: readonly string[] = row.attributes;
  for (const attribute of Object.keys(attributes))
    assert.ok(known.includes(attribute), `${attribute} is not in the row of ${name}`);
  assert.ok(startedAt <= endedAt, `${name} ends before it starts`);
}

function namesOf(all: readonly OtlpSpan[]): string {
  return all
    .map(({ name }) => name)
    .sort()
    .join(', ');
}
