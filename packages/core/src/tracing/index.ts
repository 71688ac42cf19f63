export {
  endSpan,
  type OpenSpan,
  openSpanTracer,
  type SpanError,
  type SpanTracer,
  creationErrorSpan,
  creationSpan,
  type SpanAttributes,
  type SpanName,
} from './spans.js';
export {
  carryTrace,
  dropTrace,
  formatTraceparent,
  isSampled,
  parseTraceparent,
  traceContextOf,
  traceIdOf,
} from './trace-context.js';
