import { trace } from '@opentelemetry/api';
import { ParentBasedSampler, SamplingDecision, TraceIdRatioBasedSampler, type Sampler } from '@opentelemetry/sdk-trace-base';
import { SEMANTIC_ATTRIBUTE_SENTRY_SAMPLE_RATE } from '@sentry/node';

/**
 * Keeps what the sender of a trace decided, and this share of the traces that begin here. The share is taken from the trace id, so that processes with
 * the same share keep the same traces. A span that is known to fail is recorded in the other traces too, for its error alone. Sentry's own sampler takes a
 * sender's no for no decision, drops every HTTP request that has no parent in its process, and writes its notes into the `tracestate` that travels on.
 */
export function samplerOf(rate: number): Sampler {
  const sampler = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(rate) });
  return {
    shouldSample: (context, traceId, name, kind, attributes, links) => {
      const result = sampler.shouldSample(context, traceId, name, kind, attributes, links);
      if (result.decision !== SamplingDecision.RECORD_AND_SAMPLED) {
        return attributes['error.type'] === undefined ? result : { ...result, decision: SamplingDecision.RECORD };
      }
      if (trace.getSpanContext(context)) return result;
      // From this Sentry reckons how many there were in all.
      return { ...result, attributes: { [SEMANTIC_ATTRIBUTE_SENTRY_SAMPLE_RATE]: rate } };
    },
    toString: () => `Share of traces: ${rate}`,
  };
}
