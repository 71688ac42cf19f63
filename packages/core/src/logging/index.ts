export { createLog, type Log, silentLog } from './log.js';
export { MASK, maskUrls } from './redaction.js';
