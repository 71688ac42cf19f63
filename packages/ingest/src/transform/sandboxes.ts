import { basename } from 'node:path';
import type { Config } from '@gateway/core/config';
import { Sandbox, type SandboxLimits } from '@gateway/sandbox';

const IDLE_MS = 60_000;

/** Processes start on the first run and end after `idleMs` without one. */
export function idleSandbox(
  limits: SandboxLimits,
  idleMs = IDLE_MS,
): Pick<Sandbox, 'run' | 'close'> & { readonly processes: number } {
  let sandbox: Sandbox | undefined;
  let running = 0;
  let timer: NodeJS.Timeout | undefined;
  const end = () => {
    const ended = sandbox;
    sandbox = undefined;
    return ended?.close();
  };
  return {
    get processes() {
      return sandbox?.processes ?? 0;
    },
    async run(...given) {
      clearTimeout(timer);
      running++;
      try {
        return await (sandbox ??= new Sandbox(limits)).run(...given);
      } finally {
        if (--running === 0) timer = setTimeout(() => void end(), idleMs).unref();
      }
    },
    async close() {
      clearTimeout(timer);
      await end();
    },
  };
}

/** From `transform.*`. */
export function sandboxLimits({ transform }: Pick<Config, 'transform'>): SandboxLimits {
  return {
    deadlineMs: transform.deadline_ms,
    memoryMb: transform.memory_mb,
    maxOutputBytes: transform.max_output_bytes,
    processes: transform.processes,
  };
}

const FUNCTION = `function transform(payload) { return { event_type: 'doctor', data: payload }; }`;

/**
 * Runs a function in a new sandbox. Returns its start time and the protections of its process.
 *
 * @throws SandboxError if no process can be started
 */
export async function readSandboxFacts(config: Pick<Config, 'transform'>) {
  const sandbox = new Sandbox({ ...sandboxLimits(config), processes: 1 });
  const startedAtMs = performance.now();
  try {
    const [result] = await sandbox.run({ key: 'doctor', text: FUNCTION }, ['{"n":1}']);
    const startMs = performance.now() - startedAtMs;
    if (result?.kind === 'refused')
      throw new Error(`a function that does nothing was rejected: ${result.reason}`);
    const { file = '', args = [] } = sandbox.command ?? {};
    const programs = [file, ...args].map((word) => basename(word));
    // prlimit limits a process's total memory. setpriv ends a process with its parent, and needs no
    // privileges.
    return {
      startMs,
      memoryLimited: programs.includes('prlimit'),
      diesWithParent: programs.includes('setpriv'),
    };
  } finally {
    await sandbox.close();
  }
}
