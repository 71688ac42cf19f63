export { type Explanation } from './explain-event.js';
export { type ExplainedRoute, type ExplainedSubscription, type ExplainedTarget, type SubscriptionMismatch } from './explain-route.js';
export { type Preview, type Previewer } from './preview.js';
export { openReplayer, type Replayed, type Verdict } from './replay.js';
export { examineSandbox } from './sandbox-facts.js';
export { explainEvent } from './explain-event.js';
export { openJudge } from './replay.js';
export { openPreviewer } from './preview.js';
export { explainRoute } from './explain-route.js';
