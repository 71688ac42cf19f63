import { AsyncResource } from 'node:async_hooks';
import { asProcess, type Handle, type PluginLog, type SourcePlugin } from '@gateway/plugin';
import type { ConnectionSchema } from '../crypto/sealing.js';
import type { sourceGuard } from '../http/ssrf-guard.js';
import { withDefaults } from './connection-fields.js';

/** The maximum HTTP response size in a connection test. */
const CHECK_ANSWER_BYTES = 1024 * 1024;
/**
 * The maximum HTTP response size when reading a source. Enough for ten 1 MB SQS messages with
 * escapes.
 */
const READ_ANSWER_BYTES = 32 * 1024 * 1024;

/**
 * Wraps a source plugin, so that it gets connections with defaults and can reach only allowed
 * networks.
 */
export function guardedSource(
  plugin: SourcePlugin,
  schema: ConnectionSchema,
  guard: ReturnType<typeof sourceGuard>,
): SourcePlugin {
  const reading = <T>(work: () => T) => guard(READ_ANSWER_BYTES, work);
  return {
    check: (connection, context) =>
      guard(CHECK_ANSWER_BYTES, () =>
        plugin.check(withDefaults(connection, schema), {
          ...context,
          signal: abortingHere(context.signal),
        }),
      ),
    run: (connection, handle, context) => {
      const ofCore: Handle = (message) => asProcess(() => handle(message));
      const onWorkers = (follow: (workers: number) => void) =>
        asProcess(() => context.onWorkers?.((workers) => reading(() => follow(workers))));
      return reading(() =>
        plugin.run(withDefaults(connection, schema), ofCore, {
          ...asCore(context),
          ...(context.onWorkers && { onWorkers }),
        }),
      );
    },
    ...(plugin.watch && {
      watch: (connection, context) =>
        reading(() => plugin.watch!(withDefaults(connection, schema), asCore(context))),
    }),
  };
}

/**
 * Returns the context for a plugin. Core functions that the plugin calls run unguarded, and the
 * plugin's abort listeners run guarded.
 */
function asCore<Context extends { readonly log: PluginLog; readonly signal: AbortSignal }>(
  context: Context,
): Context {
  const ofCore = (value: unknown) =>
    typeof value === 'function'
      ? (...args: unknown[]) => asProcess(() => (value as (...args: unknown[]) => unknown)(...args))
      : value;
  const log: PluginLog = {
    debug: (...line) => asProcess(() => context.log.debug(...line)),
    info: (...line) => asProcess(() => context.log.info(...line)),
    warn: (...line) => asProcess(() => context.log.warn(...line)),
    error: (...line) => asProcess(() => context.log.error(...line)),
  };
  const functions = Object.fromEntries(
    Object.entries(context).map(([name, value]) => [name, ofCore(value)]),
  ) as Context;
  return { ...functions, log, signal: abortingHere(context.signal) };
}

/**
 * Returns a signal that aborts with `signal`, but runs its listeners in the current async context
 * and not that of the core.
 */
function abortingHere(signal: AbortSignal): AbortSignal {
  const here = new AbortController();
  const abort = AsyncResource.bind(() => here.abort(signal.reason));
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  return here.signal;
}
