export { openDryRunner, type DryRun } from './dry-run.js';
export { explainEvent, type Explanation } from './explain-event.js';
export {
  explainRoute,
  type ExplainedRoute,
  type ExplainedSubscription,
  type ExplainedTarget,
  type SubscriptionMismatch,
} from './explain-route.js';
export { openPreviewer, type Preview, type Previewer } from './preview.js';
export { openReplayer, type Replayed } from './replay.js';
export { readSandboxFacts } from './sandbox-facts.js';
