export { rejectCodes } from './reject-codes.js';
export { type RoutingRule, sentenceOf } from './routing.js';
