import { trace } from '@opentelemetry/api';
import { ParentBasedSampler, SamplingDecision, TraceIdRatioBasedSampler, type Sampler } from '@opentelemetry/sdk-trace-base';
import { SEMANTIC_ATTRIBUTE_SENTRY_SAMPLE_RATE } from '@sentry/node';

/**
 * Keeps what the sender of a trace decided, and this share of the traces that begin here. The share is taken from the trace id, so that processes with
 * the same share keep the same traces. Sentry's own sampler takes a sender's no for no decision, drops every HTTP request that has no parent in its
 * process, and writes its notes into the `tracestate` that travels on.
 */
export function samplerOf(rate: number): Sampler {
  const sampler = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(rate) });
  return {
    shouldSample: (context, ...span) => {
      const result = sampler.shouldSample(context, ...span);
      const beginsHere = trace.getSpanContext(context) === undefined;
      // From this Sentry reckons how many there were in all.
      const attributes = { [SEMANTIC_ATTRIBUTE_SENTRY_SAMPLE_RATE]: rate };
      return beginsHere && result.decision === SamplingDecision.RECORD_AND_SAMPLED ? { ...result, attributes } : result;
    },
    toString: () => `Share of traces: ${rate}`,
  };
}
