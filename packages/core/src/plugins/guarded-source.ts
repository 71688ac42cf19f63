import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Handle,
  type Message,
  type PartitionMove,
  type Outcome,
  PluginError,
  type PluginLog,
  type SourceContext,
  type SourcePlugin,
  whenAborted,
} from '@gateway/plugin';
import type { ConnectionSchema } from '../crypto/sealing.js';
import type { sourceGuard } from '../http/ssrf-guard.js';
import { withDefaults } from './connection-fields.js';
import type { InstalledPlugin } from './manifest.js';
import { asCore, kindOf, readableError, untilFault } from './plugin-faults.js';
import { takenMessage } from './taken-message.js';

const CHECK_ANSWER_BYTES = 1024 * 1024;
/** Enough for ten 1 MB SQS messages with escapes. */
const READ_ANSWER_BYTES = 32 * 1024 * 1024;

/**
 * Unsettled messages of a source, twice what plugins with `InFlight` buffer; below it, what each
 * message counts for at least.
 */
const UNSETTLED_BYTES_MAX = 512 * 1024 * 1024;
const MESSAGE_BYTES_MIN = 1024;

/** `run` must end this long after it was told to and its last message has settled. */
const END_MS = 10_000;
const LOOK_MS = 500;

/** Partitions of a source. */
const MOVES_MAX = 10_000;

const STATES: readonly unknown[] = ['connecting', 'reading', 'failing'];

/**
 * The plugin gets connections with defaults and reaches only allowed networks. Its output is
 * validated here and nowhere else. A mistake of the plugin, and an error that it does not catch,
 * rejects its call with an error that names it.
 */
export function guardedSource(
  plugin: SourcePlugin,
  installed: Pick<InstalledPlugin, 'name' | 'package'> & {
    readonly connectionSchema?: ConnectionSchema;
  },
  { guard }: { readonly guard: ReturnType<typeof sourceGuard> },
): SourcePlugin {
  const { name, package: from, connectionSchema: schema = {} } = installed;
  const heldBy = new Map<string, Held>();
  const reading = <T>(work: () => T) => guard(READ_ANSWER_BYTES, work);
  const mistake = (predicate: string) =>
    new PluginError(`The source plugin ${name} ${predicate}.`, {
      fix: `Report it to the author of ${from}; \`gateway plugins test ${from}\` checks the contract.`,
    });
  const called = <T>(work: () => Promise<T>): Promise<T> =>
    untilFault(work).catch((thrown: unknown) => {
      throw readableError(thrown);
    });
  return {
    check: async (connection, context) => {
      const advice: unknown = await guard(CHECK_ANSWER_BYTES, () =>
        called(() =>
          plugin.check(withDefaults(connection, schema), {
            ...context,
            signal: abortingHere(context.signal),
          }),
        ),
      );
      const { message, fix } = (advice ?? {}) as { message?: unknown; fix?: unknown };
      return typeof message === 'string' && typeof fix === 'string' ? { message, fix } : undefined;
    },
    run: (connection, handle, context) =>
      new Promise((resolve, reject) => {
        const { sourceId } = context;
        // Shared with earlier runs, whose messages may not have settled.
        const held = heldBy.get(sourceId) ?? { messages: 0, bytes: 0, settledAtMs: 0 };
        heldBy.set(sourceId, held);
        const run = { isOver: false };
        const failed = (predicate: string) => reject(mistake(predicate));
        const taking: Handle = (given) =>
          asCore(() => {
            const message = takenMessage(given);
            if (typeof message === 'string') failed(`hands over ${message}`);
            else if (held.bytes > UNSETTLED_BYTES_MAX)
              failed(
                `hands over more than ${UNSETTLED_BYTES_MAX / 1024 / 1024} MiB of messages without waiting until earlier ones have settled`,
              );
            else return counted(held, message, handle);
            return Promise.resolve('later');
          });
        const onWorkers = (follow: (workers: number) => void) =>
          asCore(() => {
            if (typeof follow !== 'function')
              return failed(`calls onWorkers with ${kindOf(follow)} instead of a function`);
            context.onWorkers?.((workers) => {
              const following = () => reading(() => follow(workers));
              untilFault(following).catch((thrown: unknown) => reject(readableError(thrown)));
            });
          });
        const report: SourceContext['report'] = (state, reason) =>
          asCore(() => {
            if (STATES.includes(state) && typeof (reason ?? '') === 'string')
              return context.report(state, reason ?? undefined);
            failed(
              `reports the state ${STATES.includes(state) ? state : kindOf(state)} with ${kindOf(reason)} as reason`,
            );
          });
        reading(() =>
          called(() =>
            plugin.run(withDefaults(connection, schema), taking, {
              ...inCore(context),
              report,
              ...(context.onWorkers && { onWorkers }),
            }),
          ),
        )
          .then(resolve, reject)
          .finally(() => {
            run.isOver = true;
            if (held.messages === 0) heldBy.delete(sourceId);
          });
        void overdue(context.signal, held, run).then(() =>
          failed(`did not stop reading within ${END_MS / 1000} s after it was told to`),
        );
      }),
    ...(plugin.watch && {
      watch: (connection, context) =>
        reading(() =>
          called(() => plugin.watch!(withDefaults(connection, schema), inCore(context))),
        ),
    }),
    ...(plugin.seek && {
      seek: async (connection, context) => {
        const moves: unknown = await reading(() =>
          called(() =>
            plugin.seek!(withDefaults(connection, schema), {
              ...context,
              signal: abortingHere(context.signal),
            }),
          ),
        );
        if (!Array.isArray(moves)) throw mistake(`returns ${kindOf(moves)} from seek`);
        return moves.slice(0, MOVES_MAX) as PartitionMove[];
      },
    }),
  };
}
/** Unsettled messages of a source. */
interface Held {
  messages: number;
  bytes: number;
  settledAtMs: number;
}

async function counted(held: Held, message: Message, handle: Handle): Promise<Outcome> {
  const bytes = Math.max(
    MESSAGE_BYTES_MIN,
    message.body.byteLength + (message.key?.byteLength ?? 0),
  );
  held.messages++;
  held.bytes += bytes;
  const outcome = await handle(message);
  held.messages--;
  held.bytes -= bytes;
  held.settledAtMs = performance.now();
  return outcome;
}

/**
 * Resolves `END_MS` after the last message of an aborted run has settled, or when the run has
 * ended.
 */
async function overdue(
  signal: AbortSignal,
  held: Held,
  run: { readonly isOver: boolean },
): Promise<void> {
  await whenAborted(signal);
  held.settledAtMs = performance.now();
  while (!run.isOver && (held.messages > 0 || performance.now() - held.settledAtMs < END_MS))
    await sleep(LOOK_MS);
}

/**
 * Core functions that the plugin calls run unguarded, and the plugin's abort listeners run guarded.
 */
export function inCore<Context extends { readonly log: PluginLog; readonly signal: AbortSignal }>(
  context: Context,
): Context {
  const ofCore = (value: unknown) =>
    typeof value === 'function'
      ? (...args: unknown[]) => asCore(() => (value as (...args: unknown[]) => unknown)(...args))
      : value;
  const line = (level: keyof PluginLog) => (fields: object, sentence: string) =>
    asCore(() => {
      try {
        context.log[level](fields ?? {}, String(sentence));
      } catch {
        context.log[level]({}, 'A plugin logs what cannot be read.');
      }
    });
  const log: PluginLog = {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
  };
  const functions = Object.fromEntries(
    Object.entries(context).map(([name, value]) => [name, ofCore(value)]),
  ) as Context;
  return { ...functions, log, signal: abortingHere(context.signal) };
}

/** Runs listeners in the current async context and not that of the core. */
function abortingHere(signal: AbortSignal): AbortSignal {
  const here = new AbortController();
  const abort = AsyncResource.bind(() => here.abort(signal.reason));
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  return here.signal;
}
