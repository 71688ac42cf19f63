import type { Config } from '@gateway/core/config';
import { Sandbox } from '@gateway/sandbox';
import { basename } from 'node:path';
import { sandboxLimits } from '../ingest/transformer.js';

/** How this machine runs transform functions. */
export interface SandboxFacts {
  /** Milliseconds from the start of the process to the first result. */
  readonly startMs: number;
  /** The kernel limits the memory of a process, not only its heap. */
  readonly memoryLimited: boolean;
  /** The process dies with its parent and cannot gain privileges. */
  readonly diesWithParent: boolean;
}

const FUNCTION = `function transform(payload) { return { event_type: 'doctor', data: payload }; }`;

/**
 * Starts a sandbox with the limits of the settings and runs a function in it.
 *
 * @throws SandboxError when no process can be started; Error for an unexpected result
 */
export async function readSandboxFacts(config: Pick<Config, 'transform'>): Promise<SandboxFacts> {
  const sandbox = new Sandbox({ ...sandboxLimits(config), processes: 1 });
  const startedAtMs = performance.now();
  try {
    const [result] = await sandbox.run({ key: 'doctor', text: FUNCTION }, ['{"n":1}']);
    const startMs = performance.now() - startedAtMs;
    if (result?.kind === 'refused') throw new Error(`a function that does nothing was rejected: ${result.reason}`);
    const { file = '', args = [] } = sandbox.command ?? {};
    const programs = [file, ...args].map((word) => basename(word));
    return { startMs, memoryLimited: programs.includes('prlimit'), diesWithParent: programs.includes('setpriv') };
  } finally {
    await sandbox.close();
  }
}
