import { Sandbox, type SandboxLimits } from '@gateway/sandbox';

/** A sandbox whose processes start with the first run, and end when nothing has run for `idleMs`. */
export function idleSandbox(limits: SandboxLimits, idleMs: number): Pick<Sandbox, 'run' | 'close'> & { readonly processes: number } {
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
