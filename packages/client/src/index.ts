export type { CallOptions } from './call.js';
export { GatewayClient, type ClientOptions } from './client.js';
export { GatewayApiError } from './error.js';
export { Pages, type Page } from './pages.js';
export {
  remoteKeys,
  VerificationError,
  type GivenHeaders,
  type JsonWebKeySet,
  type RemoteKeys,
  type VerificationKeys,
  type VerifyOptions,
} from './keys.js';
export { verify } from './verify.js';
export {
  verifyMessage,
  type ReceivedRequest,
  type VerifyMessageOptions,
} from './verify-message.js';
export type * from './generated.js';
export { forms } from './generated.js';
