import { basename } from 'node:path';
import type { Config } from '@gateway/core/config';
import { Sandbox } from '@gateway/sandbox';
import { sandboxLimits } from './idle-sandbox.js';

const FUNCTION = `function transform(payload) { return { event_type: 'doctor', data: payload }; }`;

/** Starts a sandbox and runs a function in it. @throws SandboxError when no process can be started */
export async function readSandboxFacts(config: Pick<Config, 'transform'>) {
  const sandbox = new Sandbox({ ...sandboxLimits(config), processes: 1 });
  const startedAtMs = performance.now();
  try {
    const [result] = await sandbox.run({ key: 'doctor', text: FUNCTION }, ['{"n":1}']);
    const startMs = performance.now() - startedAtMs;
    if (result?.kind === 'refused') throw new Error(`a function that does nothing was rejected: ${result.reason}`);
    const { file = '', args = [] } = sandbox.command ?? {};
    const programs = [file, ...args].map((word) => basename(word));
    // Whether the kernel limits the memory of a process, not only its heap; and whether it dies with its parent and cannot gain privileges.
    return { startMs, memoryLimited: programs.includes('prlimit'), diesWithParent: programs.includes('setpriv') };
  } finally {
    await sandbox.close();
  }
}
