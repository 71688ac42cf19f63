// @ts-check
// Data of the page of spans.

/** @type {Record<import('#core/tracing/spans').SpanName, string>} */
// prettier-ignore
export const meanings = {
  'ingest.message': 'A message, from reading to settling. Child of the producer\'s span, or the root of a new trace. A message that returns to its broker has no span.',
  'ingest.throttle': 'The wait of a message for the ingest rate (`instance_ingest_rate`). No span at a rate of 0 or for waits under a millisecond.',
  'ingest.transform': 'A run of the transform function of the source, including the wait for the sandbox.',
  'event.creation.success': 'Creation of an event by source, endpoint id or owner id, or as a broadcast, until its commit. Parent of all later spans.',
  'event.creation.error': 'An event could not be created: its message was quarantined, or the API rejected it.',
  'dynamic.event.creation.success': 'Creation of an event whose endpoints are found by matching subscriptions, until its commit. Parent of all later spans.',
  'dynamic.event.creation.error': 'An event whose endpoints are found by matching subscriptions could not be created.',
  'event.routing': 'An event in a queue, from its commit (or the previous queue) to the commit of its deliveries. An event routed by the agent that accepted it has no span.',
  'dynamic.event.subscription.matching.error': 'Matching an event with subscriptions failed.',
  meta_event_delivery: 'A delivery attempt. The `traceparent` header of its request refers to this span. A later attempt links to the previous one.',
};

/**
 * Each with its meaning, and when a span has it, if not always.
 * @type {Record<string, readonly [meaning: string, when?: string]>}
 */
// prettier-ignore
export const attributes = {
  'gateway.project': ['Id of the project.'],
  'gateway.source': ['Id of the source.', 'the event came from a source'],
  'gateway.coordinates': ['Position of the message at its broker: topic, partition and offset in Kafka, the message id in SQS.', 'the event came from a source'],
  'gateway.event': ['Id of the event.'],
  'gateway.event_type': ['Event type.', 'the message could be parsed'],
  'gateway.event_delivery': ['Id of the event delivery.'],
  'gateway.endpoint': ['Id of the endpoint.'],
  'gateway.attempt': ['Number of the attempt, from 1.'],
  'gateway.outcome': ['The outcome. A message: `accepted`, `duplicate`, `dropped` or `quarantined`. A transform: `messages`, `dropped` or `refused`. Routing: `passed_on` to the other queue, `pending` after a failure, or [the outcome of the event](errors.md#outcomes-of-events). An attempt: the status of its delivery, `success`, `retry` or `failure`.'],
  'gateway.code': ['Reason code of a quarantined message or an API error.', 'the reason has a code'],
  'gateway.queue': ['The queue: `create-event`, `match-subscriptions`, or `reconciler` for an event whose signal was lost.'],
  'gateway.deliveries': ['Number of event deliveries created.', 'the event was not passed on to the other queue'],
  'messaging.system': ['The broker: `kafka`, `aws_sqs`, or the name of another source plugin.'],
  'messaging.operation.name': ['`process`.'],
  'messaging.operation.type': ['`process`.'],
  'messaging.message.body.size': ['Bytes of the message.'],
  'http.request.method': ['`POST`.'],
  'http.response.status_code': ['HTTP status of the response.', 'there was a response'],
  'server.address': ['Host of the endpoint. The rest of its URL may be a secret and is omitted.', 'the URL can be read'],
  'server.port': ['Port of the endpoint.', 'the URL can be read'],
  'error.type': ['A quarantine code, an outcome, the HTTP status or error class of an attempt, or an error code of Postgres or the API.', 'the span failed'],
};
