import { createHook } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { owner } from './blame.js';
import { Broken, must, type Rule } from './rule.js';

export function watchUnhandledErrors(): { readonly caught: readonly string[]; close(): void } {
  const caught: string[] = [];
  const note = (what: string) => (error: unknown) =>
    void caught.push(
      `${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
  const rejected = note('unhandled rejection');
  const thrown = note('uncaught exception');
  process.on('unhandledRejection', rejected);
  process.on('uncaughtException', thrown);
  return {
    caught,
    close: () => {
      process.off('unhandledRejection', rejected);
      process.off('uncaughtException', thrown);
    },
  };
}

/** The last rule of a suite. */
export const letsNothingEscape: Rule<unknown, { readonly unhandled: readonly string[] }> = {
  sentence:
    'During all of this no rejection stayed unhandled and no exception reached the process.',
  needs: [],
  alone: true,
  test: async ({ unhandled }) => {
    // A rejection counts as unhandled only after another turn of the event loop.
    await sleep(50);
    must(unhandled.length === 0, unhandled.slice(0, 3).join('\n'));
  },
};

const POLL_MS = 20;

/**
 * Runs the work three times. Fails if the second and third runs leave plugin resources open that
 * keep the process alive, such as sockets, timers, servers or threads; the first may open resources
 * permanently. Waits up to `withinMs` for resources to close.
 */
export async function leavesNothingOpen(
  work: () => Promise<void>,
  withinMs: number,
): Promise<void> {
  const plugin = watchPlugin();
  try {
    await owner.run('plugin', work);
    await sleep(POLL_MS);
    const before = plugin.open();
    await owner.run('plugin', work);
    await owner.run('plugin', work);
    const deadline = performance.now() + withinMs;
    for (;;) {
      await sleep(POLL_MS);
      const left = [...plugin.open()].flatMap(([kind, count]) => {
        const more = count - (before.get(kind) ?? 0);
        return more > 0 ? [`${more} ${kind}`] : [];
      });
      if (left.length === 0) return;
      if (performance.now() > deadline) throw new Broken(`left open: ${left.join(', ')}`);
    }
  } finally {
    plugin.close();
  }
}

/** `open` counts, by kind, the plugin's resources that keep the process alive. */
function watchPlugin() {
  const opened = new Map<
    number,
    { readonly kind: string; readonly resource: { hasRef(): boolean } }
  >();
  const hook = createHook({
    init: (id, kind, _trigger, resource) => {
      // Promises and requests have no `hasRef`. Ignore them: they do not keep the process alive for
      // long.
      if (owner.getStore() === 'plugin' && 'hasRef' in resource)
        opened.set(id, { kind, resource: resource as { hasRef(): boolean } });
    },
    destroy: (id) => void opened.delete(id),
  }).enable();
  const open = () => {
    const counts = new Map<string, number>();
    for (const { kind, resource } of opened.values())
      if (resource.hasRef()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return counts;
  };
  const close = () => {
    hook.disable();
    owner.disable();
  };
  return { open, close };
}
