import type { TransformResult } from '@gateway/sandbox';

/** Whether a call has ended its process. A function that throws is cheap and does not count, nor does a call that the machine was too busy to run. */
export function isOverrun(result: TransformResult): boolean {
  return result.kind === 'refused' && ['timeout', 'memory', 'crashed'].includes(result.code) && !result.starved;
}
