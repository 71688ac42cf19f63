import type { TemplateMessage } from '@gateway/core/events';
import type { OpenSpan } from '@gateway/core/tracing';
import type { Endpoint } from '@gateway/ingest/routing/project';
import type { ClaimedDelivery } from '@gateway/store/deliveries';

export interface InFlightDelivery extends ClaimedDelivery {
  /** On the monotonic clock. */
  queuedAtMs?: number;
}

/** One try to send a delivery, from its turn until its result. */
export interface Attempt {
  readonly endpoint: Endpoint;
  /** Its body is the output of the subscription's function, once that has run. */
  delivery: InFlightDelivery;
  readonly startedAtMs: number;
  /** It decides whether an open circuit breaker closes. */
  readonly isProbe: boolean;
  /** The trace context to propagate in place of the event's. */
  trace: AttemptTrace | undefined;
  /** The output of the subscription's function, or undefined if no function ran. */
  transformedData: string | undefined;
  /** Read for an endpoint whose headers have parts of it. */
  message?: TemplateMessage;
}

export interface AttemptTrace {
  readonly traceparent: string;
  readonly tracestate: string | undefined;
  readonly span: OpenSpan<'meta_event_delivery'> | undefined;
}

export interface Trip {
  readonly projectId: string;
  readonly endpointId: string;
  /** True if a closed breaker opened; false if a failed probe reopened it. */
  readonly isFirst: boolean;
  /** Whether only deliveries of operational events are known to have failed. */
  readonly isOperational: boolean;
  readonly failures: number;
  readonly error: string;
}
