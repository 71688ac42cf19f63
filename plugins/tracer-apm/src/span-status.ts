import { createRequire } from 'node:module';
import type { Span, SpanStatus } from '@opentelemetry/api';

let mended = false;

/**
 * Mends the OpenTelemetry bridge of the agent: its `setStatus` takes the object of the API for the code in it, so that every span that failed shows as of
 * unknown outcome. https://opentelemetry.io/docs/specs/otel/trace/api/#set-status
 */
export function mendSpanStatus(): void {
  if (mended) return;
  mended = true;
  const { OTelSpan } = createRequire(import.meta.url)('elastic-apm-node/lib/opentelemetry-bridge/OTelSpan') as {
    OTelSpan: { prototype: { setStatus(code: unknown): Span } };
  };
  const setStatus = OTelSpan.prototype.setStatus;
  OTelSpan.prototype.setStatus = function (status: SpanStatus | number) {
    return setStatus.call(this, typeof status === 'object' ? status.code : status);
  };
}
