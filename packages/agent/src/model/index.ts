export { sentenceOf } from './outcomes.js';
export { refusals } from './reject-codes.js';
