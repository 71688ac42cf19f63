import type { FileHandle } from 'node:fs/promises';
import { ExportResultCode, hrTimeToMicroseconds, type ExportResult } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';

/** Writes each finished span as a line of JSON. Put what speaks to your back end in its place. */
export class FileExporter implements SpanExporter {
  readonly #file: FileHandle;
  #written: Promise<unknown> = Promise.resolve();

  constructor(file: FileHandle) {
    this.#file = file;
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    const text = spans.map((span) => `${JSON.stringify(lineOf(span))}\n`).join('');
    this.#written = this.#file.appendFile(text).then(
      () => done({ code: ExportResultCode.SUCCESS }),
      (error: Error) => done({ code: ExportResultCode.FAILED, error }),
    );
  }

  async forceFlush(): Promise<void> {
    await this.#written;
  }

  async shutdown(): Promise<void> {
    await this.#written;
  }
}

function lineOf(span: ReadableSpan): object {
  const { traceId, spanId } = span.spanContext();
  return {
    name: span.name,
    traceId,
    spanId,
    parentSpanId: span.parentSpanContext?.spanId,
    startedUs: hrTimeToMicroseconds(span.startTime),
    durationUs: hrTimeToMicroseconds(span.duration),
    attributes: span.attributes,
    resource: span.resource.attributes,
  };
}
