export type { ExplainedDelivery, OtherRecord } from './event-facts.js';
export { explainEvent, type Explanation } from './explain-event.js';
export {
  explainRoute,
  type ExplainedRoute,
  type ExplainedSubscription,
  type ExplainedTarget,
} from './explain-route.js';
export { explanationRecord, isChanged, notesOf, subscriptionRecord } from './record.js';
