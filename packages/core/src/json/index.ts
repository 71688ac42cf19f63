export { jsonMistake, withoutExcerpt } from './json-mistake.js';
export { isObject } from './json-object.js';
export { rawJsonValue, nesting, NESTING_MAX } from './raw-json-value.js';
