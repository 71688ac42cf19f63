export { Sandbox, type TransformFunction } from './parent/sandbox.js';
export { takesMessage } from './protocol/takes-message.js';
export { DEFAULT_LIMITS, type SandboxLimits, type Payload } from './protocol/protocol.js';
export {
  REFUSALS,
  SandboxError,
  type RefusalCode,
  type TransformResult,
} from './protocol/result.js';
