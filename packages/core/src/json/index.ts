export { jsonMistake, withoutExcerpt } from './json-mistake.js';
export { isObject, rawJsonValue, nesting, NESTING_MAX } from './json-value.js';
