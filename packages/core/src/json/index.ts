export { jsonMistake, withoutExcerpt } from './json-mistake.js';
export { isObject, rawJsonAt, rawJsonElements, rawJsonValue, nesting, NESTING_MAX } from './json-value.js';
export { parseInSteps, type ParsedJson } from './parse-in-steps.js';
