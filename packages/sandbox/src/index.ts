export { Sandbox, type TransformFunction } from './parent/sandbox.js';
export { DEFAULT_LIMITS, type SandboxLimits } from './protocol/limits.js';
export { REFUSALS, type RefusalCode } from './protocol/refusals.js';
export { SandboxError, type CheckResult, type TransformResult } from './protocol/result.js';
