export { sentenceOf } from './routing.js';
export { rejectCodes } from './reject-codes.js';
