export { keepUp } from './partitions.js';
export { forgetOld } from './retention.js';
