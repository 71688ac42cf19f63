import type { Config } from '@gateway/core/config';
import type { SandboxLimits } from '@gateway/sandbox';

/** The limits of transform functions as the settings have them. */
export function sandboxLimits({ transform }: Pick<Config, 'transform'>): SandboxLimits {
  return {
    deadlineMs: transform.deadline_ms,
    memoryMb: transform.memory_mb,
    maxOutputBytes: transform.max_output_bytes,
    processes: transform.processes,
  };
}
