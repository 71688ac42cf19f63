import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { GatewayError, isGatewayError } from '@gateway/core/errors';
import { clip } from '@gateway/core/json';
import type { OpenCodec } from '@gateway/core/plugins';
import { backoffMs } from '@gateway/core/process';
import type { CodecInput, Message, Missing, PluginError } from '@gateway/plugin';
import type { Rejection } from '../validate/reject-codes.js';
import { allBounded, bounded, sizeProblem } from './bounds.js';
import type { DecodedMessage } from './text.js';

/** Undefined if the source stopped first, so that its broker keeps the message. */
type DecodedInTurn = DecodedMessage | undefined;

/** Runs a part of the work of a message, whose time counts for its project. */
type Run = <T>(work: () => T) => T;

export interface DecodeOptions {
  readonly maxBytes: number;
  readonly run: Run;
  /** Its caller gets the error of a registry that is away, and does not wait. */
  readonly isAwaited: boolean;
}

interface SourceCodecOptions {
  readonly type: string;
  /** Rejects if the plugin is inactive. */
  readonly open: () => Promise<OpenCodec>;
  /** Told when messages begin to wait, for each further attempt, and with null when they go on. */
  readonly waits?: (error: Error | null) => void;
}

/** For one message: a schema is loaded together with those that it refers to. */
const LOADS_MAX = 8;
const REFUSED_MS = 30_000;
const REFUSED_MAX = 1_000;
const RETRY = { baseMs: 500, capMs: 30_000 };
/** A caller that does not wait learns for this long what the last one learned. */
const AWAY_MS = 1_000;
/** Decoded without yielding after messages have waited. */
const TURN_BYTES = 64 * 1024;

/**
 * Decodes the messages of one source with its codec. While a schema is loaded, later messages wait,
 * because they must not overtake; if the registry is away, until it is back.
 */
export class SourceCodec {
  readonly #stop = new AbortController();
  #codec: OpenCodec | undefined;
  #waiting = 0;
  #turn: Promise<unknown> = Promise.resolve();
  #turnBytes = 0;
  #away: { readonly error: Error; readonly untilMs: number } | undefined;
  #isHeld = false;
  /** Rejections of `load`, by name. */
  readonly #refused = new Map<
    string,
    { readonly rejection: Rejection; readonly untilMs: number }
  >();

  constructor(private readonly options: SourceCodecOptions) {}

  /** Rejects only for a message whose caller waits, if the registry is away. */
  decode(message: Message, options: DecodeOptions): DecodedMessage | Promise<DecodedInTurn> {
    const refused = sizeProblem(message.body.byteLength, options.maxBytes);
    if (refused) return refused;
    if (this.#waiting === 0 && this.#codec) {
      const decoded = this.#try(this.#codec, message, options.maxBytes);
      if (!isMissing(decoded)) return decoded;
    }
    this.#waiting++;
    const turn = this.#turn
      .then(() => this.#inTurn(message, options))
      .finally(() => void this.#waiting--);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Messages that wait stay with their broker. */
  stop(): void {
    this.#stop.abort();
  }

  async #inTurn(message: Message, options: DecodeOptions): Promise<DecodedInTurn> {
    this.#turnBytes += message.body.byteLength;
    if (this.#turnBytes > TURN_BYTES) {
      this.#turnBytes = 0;
      await nextTurn();
    }
    for (let failures = 0; !this.#stop.signal.aborted;) {
      try {
        const decoded = await this.#load(message, options);
        if (this.#isHeld) this.options.waits?.(null);
        this.#isHeld = false;
        return decoded;
      } catch (error) {
        if (options.isAwaited) throw unavailable(this.options.type, error as Error);
        this.#isHeld = true;
        this.options.waits?.(error as Error);
        await sleep(backoffMs(++failures, RETRY), undefined, { signal: this.#stop.signal }).catch(
          () => undefined,
        );
      }
    }
    return undefined;
  }

  /** Rejects if the registry is away. */
  async #load(
    message: Message,
    { maxBytes, run, isAwaited }: DecodeOptions,
  ): Promise<DecodedMessage> {
    if (isAwaited && this.#away && this.#away.untilMs > performance.now()) throw this.#away.error;
    try {
      const codec = (this.#codec ??= await this.options.open());
      for (let loads = 0; loads <= LOADS_MAX; loads++) {
        const decoded = run(() => this.#try(codec, message, maxBytes));
        if (!isMissing(decoded)) return decoded;
        const refused = await this.#loadSchema(codec, decoded.missing);
        if (refused) return refused;
      }
    } catch (error) {
      this.#away = { error: error as Error, untilMs: performance.now() + AWAY_MS };
      throw error;
    }
    return this.#rejection(new Error(`It needs more than ${LOADS_MAX} schemas one after another.`));
  }

  async #loadSchema(codec: OpenCodec, name: string): Promise<Rejection | undefined> {
    const known = this.#refused.get(name);
    if (known && known.untilMs > performance.now()) return known.rejection;
    this.#refused.delete(name);
    try {
      await codec.load(name);
      return undefined;
    } catch (error) {
      if (!isUndecodable(error)) throw error;
      const rejection = this.#rejection(error);
      for (const oldest of this.#refused.keys()) {
        if (this.#refused.size < REFUSED_MAX) break;
        this.#refused.delete(oldest);
      }
      this.#refused.set(name, { rejection, untilMs: performance.now() + REFUSED_MS });
      return rejection;
    }
  }

  #try(codec: OpenCodec, { body, headers }: Message, maxLength: number): DecodedMessage | Missing {
    const input: CodecInput = { bytes: body, headers, maxLength };
    try {
      const decoded = codec.decode(input);
      if (typeof decoded === 'string') return bounded(decoded, maxLength);
      return 'missing' in decoded ? decoded : allBounded(decoded, maxLength);
    } catch (error) {
      return this.#rejection(error as Error);
    }
  }

  #rejection(error: Partial<PluginError>): Rejection {
    const { message = '', fix } = error;
    const because = `The codec ${this.options.type} cannot decode the message. ${clip(message, 1_000)}`;
    const remedy =
      fix ??
      'Send what is written as the codec of the source expects, or report it to the author of the codec.';
    return { code: 'undecodable', reason: `${because.replace(/\.?$/, '.')} ${remedy}` };
  }
}

function isMissing(decoded: DecodedMessage | Missing): decoded is Missing {
  return typeof decoded === 'object' && 'missing' in decoded;
}

function isUndecodable(error: unknown): error is Error {
  return (error as { isUndecodable?: unknown } | undefined)?.isUndecodable === true;
}

/** An error without a fix may quote a server, so it is only logged. */
function unavailable(name: string, cause: Error & { readonly fix?: string }): GatewayError {
  if (isGatewayError(cause)) return cause;
  const { message, fix } = cause;
  const reason = fix === undefined ? 'its registry cannot be read' : message.replace(/\.$/, '');
  return new GatewayError(
    'codec_unavailable',
    { name, reason, fix: fix ?? 'try again; if it stays, test the connection of the source' },
    { cause },
  );
}
