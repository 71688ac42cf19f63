export { jsonMistake, withoutExcerpt } from './json-mistake.js';
export { isObject, rawJsonElements, rawJsonValue, nesting, NESTING_MAX } from './json-value.js';
export { parseInSteps, type ParsedJson } from './parse-in-steps.js';
