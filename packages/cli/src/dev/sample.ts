/** The sample: a message in a shape of its own, and the function that makes an ingest message of it. */
export const QUEUE_NAME = 'orders';

/** A message of a shop, which knows nothing of webhooks. */
export function sampleMessage(number: string): string {
  return JSON.stringify({ kind: 'order.created', shop: 'berlin', order: { number, total: '19.90', currency: 'EUR' } });
}

export const QUEUE_FUNCTION = `// Called with each message of the queue; returns the event to deliver.
function transform(payload) {
  // A message that says all by itself stays as it is.
  if (payload.event_type && payload.data) return payload;
  return {
    event_type: payload.kind,
    data: payload.order,
    custom_headers: { 'x-shop': payload.shop },
  };
}
`;

/** For a topic that somebody points us at: whatever JSON is in it becomes an event. */
export function topicFunction(topic: string): string {
  return `// Called with each message of the topic; returns the event to deliver.
function transform(payload) {
  // A message that says all by itself stays as it is.
  if (payload && payload.event_type && payload.data) return payload;
  const isObject = typeof payload === 'object' && payload !== null && !Array.isArray(payload);
  return { event_type: ${JSON.stringify(topic)}, data: isObject ? payload : { value: payload } };
}
`;
}
