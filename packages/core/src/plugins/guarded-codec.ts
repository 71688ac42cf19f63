import {
  type Advice,
  type Codec,
  type CodecInput,
  type CodecPlugin,
  type Missing,
  PluginError,
  type PluginLog,
} from '@gateway/plugin';
import type { sourceGuard } from '../http/ssrf-guard.js';
import { isObject } from '../json/json-value.js';
import { withTimeout } from '../process/timing.js';
import { withDefaults } from './connection-fields.js';
import type { InstalledPlugin } from './manifest.js';
import { kindOf, readableError, untilFault } from './plugin-faults.js';

/** For an answer of a registry. */
const ANSWER_BYTES = 4 * 1024 * 1024;
const CALL_MS = 10_000;
const NAME_MAX = 200;

type Plain = Record<string, unknown>;

export interface GuardedCodec {
  check(settings: Plain): Promise<Advice | undefined>;
  open(settings: Plain, log: PluginLog): OpenCodec;
}

export interface OpenCodec {
  /** Throws what the codec throws: the message is at fault. */
  decode(input: CodecInput): string | readonly string[] | Missing;
  /** Rejects with an error whose `isUndecodable` is true if the message is at fault. */
  load(name: string): Promise<void>;
}

/**
 * The codec gets settings with defaults, and reaches only allowed networks. Decoding is not wrapped,
 * because it is synchronous and called for each message.
 */
export function guardedCodec(
  plugin: CodecPlugin,
  { name, package: from, connectionSchema: schema = {} }: InstalledPlugin,
  { guard }: { readonly guard: ReturnType<typeof sourceGuard> },
): GuardedCodec {
  const mistake = (predicate: string) =>
    new PluginError(`The codec ${name} ${predicate}.`, {
      fix: `Report it to the author of ${from}; \`gateway plugins test ${from}\` checks the contract.`,
    });
  const inTime = async <T>(call: string, work: (signal: AbortSignal) => T): Promise<Awaited<T>> => {
    const ended = new AbortController();
    const working = guard(ANSWER_BYTES, () => untilFault(async () => work(ended.signal)));
    const late = `The ${call} of the codec ${name} did not end within ${CALL_MS / 1000} s`;
    try {
      return await withTimeout(working, CALL_MS, late);
    } catch (thrown) {
      throw readableError(thrown);
    } finally {
      ended.abort();
    }
  };
  return {
    async check(settings) {
      const advice: unknown = await inTime('check', (signal) =>
        plugin.check?.({ ...withDefaults(settings, schema) }, { signal }),
      );
      const { message, fix } = (advice ?? {}) as { message?: unknown; fix?: unknown };
      return typeof message === 'string' && typeof fix === 'string' ? { message, fix } : undefined;
    },
    open(settings, log) {
      const codec: Codec = plugin.open({ ...withDefaults(settings, schema) }, { log });
      return {
        decode(input) {
          const made: unknown = codec.decode(input);
          if (typeof made === 'string') return made;
          if (Array.isArray(made) && made.every((text) => typeof text === 'string')) return made;
          if (isObject(made) && typeof made['missing'] === 'string') {
            if (made['missing'].length <= NAME_MAX) return { missing: made['missing'] };
            throw mistake(`names what it needs with more than ${NAME_MAX} characters`);
          }
          // A promise of a codec that decodes asynchronously.
          if (made instanceof Promise) made.catch(() => undefined);
          throw mistake(`makes ${kindOf(made)} of a message instead of a text`);
        },
        async load(missing) {
          if (!codec.load) throw mistake('needs a schema, and has no function load');
          await inTime('load', (signal) => codec.load!(missing, { signal }));
        },
      };
    },
  };
}
