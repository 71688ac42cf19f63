import { basename } from 'node:path';
import type { Config } from '@gateway/core/config';
import { Sandbox } from '@gateway/sandbox';
import { sandboxLimits } from '../ingest/sandbox-limits.js';

/** How transform functions run on this machine. */
export interface SandboxFacts {
  /** Milliseconds from nothing to the answer of a function. */
  readonly startMs: number;
  /** The kernel limits the memory of a process besides its heap. */
  readonly memoryLimited: boolean;
  /** A process dies with its parent, and gets no rights that it was not started with. */
  readonly diesWithParent: boolean;
}

const FUNCTION = `function transform(payload) { return { event_type: 'doctor', data: payload }; }`;

/**
 * Starts a sandbox with the limits of the settings, runs a function in it, and looks which confinement this machine grants.
 *
 * @throws SandboxError when no process can be started; Error when the function gave something else than expected
 */
export async function examineSandbox(config: Pick<Config, 'transform'>): Promise<SandboxFacts> {
  const sandbox = new Sandbox({ ...sandboxLimits(config), processes: 1 });
  const startedAtMs = performance.now();
  try {
    const [result] = await sandbox.run({ key: 'doctor', text: FUNCTION }, ['{"n":1}']);
    const startMs = performance.now() - startedAtMs;
    if (result?.kind === 'refused') throw new Error(`a function that does nothing was refused: ${result.reason}`);
    const { file = '', args = [] } = sandbox.command ?? {};
    const programs = [file, ...args].map((word) => basename(word));
    return { startMs, memoryLimited: programs.includes('prlimit'), diesWithParent: programs.includes('setpriv') };
  } finally {
    await sandbox.close();
  }
}
