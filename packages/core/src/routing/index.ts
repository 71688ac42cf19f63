export {
  filterMismatch,
  subscriptionMismatch,
  type SubscriptionMismatch,
  typeMismatch,
  withSentence,
} from './mismatch.js';
export {
  mayChange,
  needsMatching,
  type RoutingOutcome,
  routingOutcomes,
  type RoutingRule,
  routingRule,
  ruleSentences,
  sentenceOf,
} from './outcomes.js';
export { matchesType, type RoutableEvent, type EventRoute, route, type Target } from './route.js';
export {
  lowerNames,
  routedOf,
  type RoutedProject,
  routedProject,
  routedSubscription,
  type RoutedSubscription,
} from './routed-project.js';
