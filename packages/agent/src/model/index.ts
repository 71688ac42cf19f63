export { sentenceOf } from './outcomes.js';
export { rejectCodes } from './reject-codes.js';
