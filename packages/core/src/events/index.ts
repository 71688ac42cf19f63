export { compileFilter, FilterBudget, FilterBudgetError, shownOf, valueAt } from './filter.js';
export {
  customHeaderProblem,
  headerOwner,
  isHeaderName,
  isHeaderValue,
  isReservedHeader,
  MESSAGE_TYPE_HEADER,
  forwardedHeaders,
  travellingHeaders,
} from './headers.js';
export {
  fillTemplate,
  isTemplate,
  type TemplateMessage,
  templateProblem,
} from './header-template.js';
export {
  type WholeMessage,
  messageArgument,
  messageOf,
  partsOfStored,
  storedMessage,
} from './message.js';
export { isOperational, OPERATIONAL_TYPES, type OperationalType } from './operational.js';
export { EXPONENT, type EventSearch, parseSearch, spellingsOf } from './search.js';
export {
  clampTime,
  eventDeliveryId,
  eventId,
  isId,
  isPossibleTime,
  messageDigest,
  newId,
  timeOfId,
} from './ids.js';
