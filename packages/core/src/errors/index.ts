export {
  databaseReason,
  explainDatabaseError,
  explainKvError,
  explainListenError,
  kvAddress,
  kvReason,
  networkReason,
  tlsReason,
} from './connection-errors.js';
export { type InvalidField, type Problem } from './error-row.js';
export { type ErrorCode, GatewayError, isGatewayError } from './errors.js';
export { fileReason } from './file-error.js';
export { didYouMean, nearest } from './suggest.js';
