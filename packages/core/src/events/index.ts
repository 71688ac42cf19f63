export { compileFilter, type Filter, memberAt } from './filter.js';
export { customHeaderProblem, isHeaderName, isHeaderValue, isReservedHeader, MESSAGE_TYPE_HEADER, travellingHeaders } from './headers.js';
export { clampTime, eventDeliveryId, eventId, isId, messageDigest, newId, timeOfId } from './ids.js';
