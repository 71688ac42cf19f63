import { AsyncLocalStorage } from 'node:async_hooks';
import { asProcess, PluginError } from '@gateway/plugin';

type OnFault = (error: unknown) => void;

/** Receives the errors of the plugin whose code is running, or that started it. */
const working = new AsyncLocalStorage<OnFault | undefined>();

/**
 * Errors that neither the plugin nor anything that it starts catches are passed to `failed` by
 * `blamePlugin`. Inside, `process.exit` throws instead of ending the process.
 */
export function asPlugin<T>(failed: OnFault, work: () => T): T {
  guardExit();
  return working.run(failed, work);
}

/** For core code that a plugin calls. */
export function asCore<T>(work: () => T): T {
  return working.run(undefined, () => asProcess(work));
}

/** Returns false if no plugin caused the error. */
export function blamePlugin(error: unknown): boolean {
  const failed = working.getStore();
  if (failed) asCore(() => failed(error));
  return failed !== undefined;
}

/** Settles like `work`, or when something that it started throws. */
export function untilFault<T>(work: () => Promise<T> | T): Promise<T> {
  return new Promise((resolve, reject) => {
    // An async function, so that a synchronous throw of the plugin is a rejection too.
    asPlugin(reject, async () => work()).then(resolve, reject);
  });
}

/** A plugin may throw anything: what is not a readable error is described by one. */
export function readableError(thrown: unknown): Error {
  const fix = 'Report it to the author of the plugin.';
  try {
    if (thrown instanceof Error) {
      const { message, fix: remedy, said } = thrown as Error & { fix?: unknown; said?: unknown };
      const isText = [message, remedy ?? '', said ?? ''].every((it) => typeof it === 'string');
      if (isText && message !== '') return thrown;
    }
    return new PluginError(
      `The plugin threw ${kindOf(thrown)} instead of an error with a message.`,
      { fix },
    );
  } catch {
    return new PluginError('The plugin threw an error that cannot be read.', { fix });
  }
}

/** Without its content. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  if (typeof value !== 'object') return `a ${typeof value}`;
  const { name } = (value.constructor ?? Object) as { name?: unknown };
  if (typeof name !== 'string' || name === 'Object') return 'an object';
  return `${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name.slice(0, 40)}`;
}

let isExitGuarded = false;

function guardExit(): void {
  if (isExitGuarded) return;
  isExitGuarded = true;
  const { exit } = process;
  process.exit = (code) => {
    const failed = working.getStore();
    if (!failed) return exit.call(process, code);
    const error = new PluginError(
      `The plugin calls process.exit(${String(code ?? '')}), which would end the gateway.`,
      {
        fix: 'Report it to the author of the plugin, which must throw instead.',
      },
    );
    failed(error);
    throw error;
  };
}
