export { clip } from '@gateway/plugin';
export { jsonMistake, withoutExcerpt } from './json-mistake.js';
export { jsonMembers, repeatedMembers } from './json-members.js';
export {
  isObject,
  own,
  rawJsonAt,
  rawJsonElements,
  rawJsonValue,
  isTooDeep,
  nesting,
  NESTING_MAX,
} from './json-value.js';
export { CONTROLS, isPlain, plainOf } from './plain-text.js';
export { parseInSteps } from './parse-in-steps.js';
