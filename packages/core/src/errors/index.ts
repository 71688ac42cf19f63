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
export { type ErrorCode, GatewayError, type InvalidField, isGatewayError, type Problem } from './errors.js';
export { fileReason } from './file-error.js';
export { didYouMean, nearest } from './suggest.js';
