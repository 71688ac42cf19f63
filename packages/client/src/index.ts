export type { CallOptions } from './call.js';
export { GatewayClient, type ClientOptions } from './client.js';
export { GatewayApiError } from './error.js';
export { Pages, type Page } from './pages.js';
export { verify, VerificationError, type VerifyOptions } from './verify.js';
export type * from './generated.js';
export { forms } from './generated.js';
