import { Buffer } from 'node:buffer';
import { REFUSALS, type RefusalCode, type TransformResult } from './result.js';

/** Set by `transform.*`. Node is unreliable with less than 16 MB of heap. */
export interface SandboxLimits {
  /** Wall-clock, per call. */
  deadlineMs: number;
  /** JavaScript heap per process. */
  memoryMb: number;
  /** JSON per call, including all items of an array. */
  maxOutputBytes: number;
  /** With 1, a function that overruns delays all others. */
  processes: number;
}

export const DEFAULT_LIMITS: Readonly<SandboxLimits> = {
  deadlineMs: 1000,
  memoryMb: 64,
  maxOutputBytes: 1024 * 1024,
  processes: 2,
};

export const MAX_TEXT_CHARS = 256 * 1024;

/** In a returned array. Each item becomes an event. */
export const MAX_ITEMS = 10_000;

/** Per call. Further lines are dropped and counted in the last line. */
export const MAX_LOG_LINES = 50;
export const MAX_LOG_LINE_CHARS = 1000;

// Parent and child exchange frames: the length in four bytes (little endian), one line of JSON, and
// the raw payloads or outputs, whose sizes are in the line. Escaping them into the line would cost
// more than everything else.

/** The child exits when its standard input ends. */
export const REQUEST_FD = 0;
export const REPLY_FD = 3;
export const PROGRESS_FD = 4;

/** Bytes if not UTF-8. */
export type Payload = string | Uint8Array;

/** Calls of one function. */
export interface Chunk {
  id: number;
  key: string;
  text: string;
  payloads: readonly Payload[];
  /** JSON of the second argument of each call, if the function has one. */
  messages?: readonly string[];
}

/** In the order of the chunk's calls, starting with the call at index `first`. */
export interface Reply {
  chunk: number;
  first: number;
  answers: TransformResult[];
}

export const HEAD_BYTES = 4;
const NEWLINE = 10;

function frame(line: unknown, texts: readonly string[]): Buffer {
  const body = `${JSON.stringify(line)}\n${texts.join('')}`;
  const length = Buffer.byteLength(body);
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + length);
  bytes.writeUInt32LE(length, 0);
  bytes.write(body, HEAD_BYTES);
  return bytes;
}

/**
 * JSON with each payload's length in UTF-16 code units, then the payloads, with bytes as base64.
 */
export function encodeChunk(chunk: Chunk): Buffer {
  const { payloads, ...rest } = chunk;
  const binary = payloads.flatMap((payload, index) => (typeof payload === 'string' ? [] : index));
  const texts = payloads.map((payload) =>
    typeof payload === 'string' ? payload : Buffer.from(payload).toString('base64'),
  );
  return frame({ ...rest, chars: texts.map((text) => text.length), binary }, texts);
}

/** For the child. Not validated, because the child trusts its parent. */
export function decodeChunk(body: Buffer): Chunk {
  const end = body.indexOf(NEWLINE);
  const line = JSON.parse(body.toString('utf8', 0, end)) as Omit<Chunk, 'payloads'> & {
    chars: number[];
    binary: number[];
  };
  const { chars, binary, ...rest } = line;
  const texts = body.toString('utf8', end + 1);
  let at = 0;
  const payloads: Payload[] = chars.map((count) => texts.slice(at, (at += count)));
  for (const index of binary) payloads[index] = Buffer.from(payloads[index] as string, 'base64');
  return { ...rest, payloads };
}

/** JSON with each output's size in bytes, then the outputs. */
export function encodeReply(reply: Reply): Buffer {
  const texts: string[] = [];
  const answers = reply.answers.map((answer) => {
    const outputs =
      answer.kind === 'object' ? [answer.json] : answer.kind === 'array' ? answer.items : undefined;
    if (!outputs) return answer;
    texts.push(...outputs);
    return {
      ...answer,
      json: undefined,
      items: undefined,
      sizes: outputs.map((text) => Buffer.byteLength(text)),
    };
  });
  return frame({ ...reply, answers }, texts);
}

/** For the parent. Throws if the reply is malformed, because a function may control the child. */
export function decodeReply(body: Buffer): Reply {
  const end = body.indexOf(NEWLINE);
  const line = parse(body.toString('utf8', 0, Math.max(0, end)));
  if (
    !isRecord(line) ||
    !isCount(line['chunk']) ||
    !isCount(line['first']) ||
    !Array.isArray(line['answers'])
  )
    throw malformed();
  let at = end + 1;
  const cut = (size: unknown): string => {
    if (!isCount(size) || at + size > body.length) throw malformed();
    return body.toString('utf8', at, (at += size));
  };
  const answers = line['answers'].map((answer: unknown) => decodeAnswer(answer, cut));
  if (at !== body.length) throw malformed();
  return { chunk: line['chunk'], first: line['first'], answers };
}

function decodeAnswer(answer: unknown, cut: (size: unknown) => string): TransformResult {
  if (!isRecord(answer)) throw malformed();
  const { kind, logs, durationMs, sizes } = answer;
  if (
    !Array.isArray(logs) ||
    !logs.every((line) => typeof line === 'string') ||
    typeof durationMs !== 'number'
  )
    throw malformed();
  if (kind === 'object' && Array.isArray(sizes) && sizes.length === 1)
    return { kind, json: cut(sizes[0]), logs, durationMs };
  if (kind === 'array' && Array.isArray(sizes))
    return { kind, items: sizes.map(cut), logs, durationMs };
  if (kind === 'dropped') return { kind, logs, durationMs };
  const { code, reason } = answer;
  if (
    kind === 'refused' &&
    typeof code === 'string' &&
    Object.hasOwn(REFUSALS, code) &&
    typeof reason === 'string'
  )
    return { kind, code: code as RefusalCode, reason, logs, durationMs };
  throw malformed();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed();
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function malformed(): Error {
  return new Error('The child process sent a malformed reply.');
}

export class FrameReader {
  readonly #maxBytes: number;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #wanted = HEAD_BYTES;
  #inBody = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The bodies of completed frames. Throws if a frame is too large. */
  push(bytes: Buffer): Buffer[] {
    const bodies: Buffer[] = [];
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.length;
    while (this.#pendingBytes >= this.#wanted) {
      const all = this.#pending.length === 1 ? this.#pending[0]! : Buffer.concat(this.#pending);
      const part = all.subarray(0, this.#wanted);
      const rest = all.subarray(this.#wanted);
      this.#pending = rest.length === 0 ? [] : [rest];
      this.#pendingBytes = rest.length;
      if (this.#inBody) {
        bodies.push(part);
        this.#wanted = HEAD_BYTES;
      } else {
        this.#wanted = part.readUInt32LE(0);
        if (this.#wanted > this.#maxBytes) throw malformed();
      }
      this.#inBody = !this.#inBody;
    }
    return bodies;
  }
}
