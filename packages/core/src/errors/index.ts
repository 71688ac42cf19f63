export {
  CONNECTION_REASONS,
  type ConnectionReason,
  explainKvError,
  explainListenError,
  fileReason,
  kvAddress,
  kvReason,
  networkReason,
  tlsReason,
} from './connection-errors.js';
export { databaseReason, explainDatabaseError } from './database-errors.js';
export {
  type ConflictCode,
  CONFLICTS,
  type InvalidField,
  type SettingProblem,
} from './error-row.js';
export { type ErrorCode, GatewayError, isGatewayError } from './errors.js';
export { didYouMean, nearest } from './suggest.js';
export { maskUrls, withoutSecrets } from '../logging/redaction.js';
