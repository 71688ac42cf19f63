import type { Codec, CodecInput, CodecPlugin } from '@gateway/plugin';
import { isDeepStrictEqual } from 'node:util';
import { Broken, must, mustHaveFix, mustReject, type Rule } from './run/rule.js';
import { Bench } from './run/run-rules.js';

/** The rig for testing a codec. */
export interface CodecRig<Settings = Record<string, unknown>> {
  /** Returns the settings of a source. */
  settings(): Settings | Promise<Settings>;
  /** Messages of the format with what they are as JSON text; the more kinds of values, the better. */
  readonly samples: readonly CodecSample[];
  /** Messages that cannot be decoded, beside the empty and cut ones that the suite makes. */
  readonly undecodable?: readonly Omit<CodecSample, 'json'>[];
  /**
   * Makes the registry unreachable, and resolves with a function that makes it reachable again. Omit
   * it if the codec loads nothing.
   */
  cutOff?(): Promise<() => Promise<void>>;
  close?(): Promise<void>;
}

export interface CodecSample {
  readonly bytes: Uint8Array;
  readonly headers?: CodecInput['headers'];
  readonly json: string;
}

const LOADS_MAX = 8;
/** For a message of any content. */
const DECODE_MS = 1_000;
const LENGTH_MAX = 1024 * 1024;

const ignore = () => undefined;
const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

export class CodecBench extends Bench<CodecPlugin, CodecRig> {
  async open(): Promise<Codec> {
    return this.plugin.open(await this.rig.settings(), { log });
  }

  /** Undefined if it returns what it needs. Throws what the codec throws. */
  decode(
    codec: Codec,
    { bytes, headers = {} }: Omit<CodecSample, 'json'>,
  ): { readonly text: string } | { readonly missing: string } {
    const startedMs = performance.now();
    const mustBeFast = () => {
      const tookMs = Math.round(performance.now() - startedMs);
      must(tookMs <= DECODE_MS, `decode took ${tookMs} ms for ${bytes.length} bytes`);
    };
    let made: unknown;
    try {
      made = codec.decode({ bytes, headers, maxLength: LENGTH_MAX });
    } catch (error) {
      mustBeFast();
      throw error;
    }
    mustBeFast();
    if (typeof made === 'string') return { text: made };
    if (Array.isArray(made) && made.every((text) => typeof text === 'string'))
      return { text: `[${made.join(',')}]` };
    const { missing } = (made ?? {}) as { missing?: unknown };
    must(
      typeof missing === 'string',
      'decode returns neither texts nor an object with the text `missing`; it must not be asynchronous',
    );
    return { missing };
  }

  async whole(codec: Codec, sample: Omit<CodecSample, 'json'>): Promise<string> {
    for (let loads = 0; loads <= LOADS_MAX; loads++) {
      const made = this.decode(codec, sample);
      if ('text' in made) return made.text;
      await codec.load!(made.missing, { signal: AbortSignal.timeout(this.withinMs) });
    }
    throw new Broken(`a message needs more than ${LOADS_MAX} loads`);
  }
}

/** Throws if it is neither a text that is JSON nor an error that a user can fix. */
async function mustJudge(bench: CodecBench, codec: Codec, bytes: Uint8Array, what: string) {
  const outcome = await bench.whole(codec, { bytes }).then(
    (text) => ({ text }),
    (error: unknown) => ({ error }),
  );
  if ('error' in outcome) {
    if (outcome.error instanceof Broken) throw outcome.error;
    return mustBeUndecodable(outcome.error, what);
  }
  try {
    JSON.parse(outcome.text);
  } catch {
    throw new Broken(`${what} becomes a text that is not JSON`);
  }
}

function mustBeUndecodable(error: unknown, what: string): void {
  mustHaveFix(error, what);
  must(
    (error as { isUndecodable?: unknown }).isUndecodable === true,
    `${what} failed with "${(error as Error).message}", which is no UndecodableError`,
  );
}

export const codecRules: Readonly<Record<string, Rule<CodecRig, CodecBench>>> = {
  'decodes-the-samples': {
    sentence: 'Each sample becomes its JSON text, after `load` of what `decode` named as missing.',
    test: async (bench) => {
      const codec = await bench.open();
      must(bench.rig.samples.length > 0, 'the rig has no samples');
      for (const [i, sample] of bench.rig.samples.entries()) {
        const text = await bench.whole(codec, sample);
        must(
          isDeepStrictEqual(JSON.parse(text), JSON.parse(sample.json)),
          `sample ${i} becomes ${text.slice(0, 300)}, not ${sample.json.slice(0, 300)}`,
        );
      }
    },
  },
  'keeps-what-it-loaded': {
    sentence: 'A sample that was decoded needs no `load` when it comes again.',
    test: async (bench) => {
      const codec = await bench.open();
      for (const [i, sample] of bench.rig.samples.entries()) {
        await bench.whole(codec, sample);
        must('text' in bench.decode(codec, sample), `sample ${i} is loaded again`);
      }
    },
  },
  'names-what-is-at-fault': {
    sentence:
      'What cannot be decoded throws an UndecodableError with a fix: messages of the rig, cut samples, samples with a changed byte, and other bytes; none takes a second.',
    test: async (bench) => {
      const codec = await bench.open();
      for (const [i, sample] of (bench.rig.undecodable ?? []).entries()) {
        const error = await mustReject(
          bench.whole(codec, sample),
          `undecodable message ${i}`,
          'is decoded',
        );
        mustBeUndecodable(error, `undecodable message ${i}`);
      }
      for (const [i, { bytes }] of bench.rig.samples.entries()) {
        await bench.whole(codec, bench.rig.samples[i]!);
        for (let length = 1; length < bytes.length; length += Math.ceil(bytes.length / 50))
          await mustJudge(bench, codec, bytes.subarray(0, length), `sample ${i} cut at ${length}`);
        for (let at = 0; at < bytes.length; at += Math.ceil(bytes.length / 50)) {
          const changed = Uint8Array.from(bytes);
          changed[at] = 0xff;
          await mustJudge(bench, codec, changed, `sample ${i} with a changed byte ${at}`);
        }
      }
      await mustJudge(bench, codec, Buffer.from('{"a":1'), 'text that is not of the format');
    },
  },
  'holds-while-the-registry-is-away': {
    sentence:
      'While the registry cannot be reached, `load` and `check` reject with an error that has a fix and is no UndecodableError; afterwards messages are decoded.',
    skip: (rig) => (rig.cutOff ? undefined : 'the rig cannot cut off a registry'),
    alone: true,
    test: async (bench) => {
      const [sample] = bench.rig.samples;
      const back = await bench.rig.cutOff!();
      const codec = await bench.open();
      try {
        const error = await mustReject(
          bench.whole(codec, sample!),
          'the first message without a registry',
          'is decoded',
        );
        must(
          (error as { isUndecodable?: unknown }).isUndecodable !== true,
          'load blames the message while the registry is away',
        );
        if (bench.plugin.check)
          await mustReject(
            bench.plugin.check(await bench.rig.settings(), {
              signal: AbortSignal.timeout(bench.withinMs),
            }),
            'check without a registry',
            'passes',
          );
      } finally {
        await back();
      }
      await bench.whole(await bench.open(), sample!);
    },
  },
  'checks-what-works': {
    sentence: 'If there is a `check`, it passes with the settings of the rig.',
    test: async (bench) => {
      const context = { signal: AbortSignal.timeout(bench.withinMs) };
      await bench.plugin.check?.(await bench.rig.settings(), context);
    },
  },
};
