export { Sandbox, type TransformFunction } from './sandbox.js';
export { DEFAULT_LIMITS, type SandboxLimits } from './limits.js';
export { REFUSALS, type RefusalCode } from './refusals.js';
export { SandboxError } from './errors.js';
export type { CheckResult, TransformResult } from './result.js';
