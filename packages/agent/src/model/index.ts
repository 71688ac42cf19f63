export { rejectCodes } from './ingest.js';
export { type RoutingRule, sentenceOf } from './routing.js';
