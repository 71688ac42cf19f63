import { Buffer } from 'node:buffer';
import { REFUSALS, type RefusalCode, type TransformResult } from './result.js';

/** Limits of calls and processes, bounded by `transform.*`. Node is unreliable below 16 MB. */
export interface SandboxLimits {
  /** Wall-clock milliseconds of one call. */
  deadlineMs: number;
  /** Megabytes of JavaScript heap of one process. */
  memoryMb: number;
  /** Bytes of JSON text that one call may return, array items together. */
  maxOutputBytes: number;
  /** Maximum of child processes. With one, a function that overruns delays all others. */
  processes: number;
}

export const DEFAULT_LIMITS: Readonly<SandboxLimits> = {
  deadlineMs: 1000,
  memoryMb: 64,
  maxOutputBytes: 1024 * 1024,
  processes: 2,
};

export const MAX_TEXT_CHARS = 256 * 1024;

/** Items of a returned array, each an event. */
export const MAX_ITEMS = 10_000;

/** Console output of a call; the rest is dropped, and the last line says so. */
export const MAX_LOG_LINES = 50;
export const MAX_LOG_LINE_CHARS = 1000;

// Parent and child exchange frames: four bytes of length (little endian), one line of JSON, then
// the raw JSON texts, whose sizes are in the line. Escaping them into it would cost more than
// everything else.

/** Descriptors of the child, which ends with its standard input, the requests. */
export const REQUEST_FD = 0;
export const REPLY_FD = 3;
export const PROGRESS_FD = 4;

/** A message: its text, or its bytes if they are not UTF-8. */
export type Payload = string | Uint8Array;

/** Calls of one function. `check` compiles and looks for `transform`, without a payload. */
export interface Chunk {
  id: number;
  kind: 'run' | 'check';
  key: string;
  text: string;
  payloads: readonly Payload[];
}

/** `compiled` answers a successful check. */
export type CallAnswer = TransformResult | { kind: 'compiled'; logs: string[]; durationMs: number };

/** Answers to the calls of a chunk in order, from index `first`. */
export interface Reply {
  chunk: number;
  first: number;
  answers: CallAnswer[];
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
 * Returns JSON with each payload's length in UTF-16 code units, then the payloads, bytes as base64.
 */
export function encodeChunk(chunk: Chunk): Buffer {
  const { payloads, ...rest } = chunk;
  const binary = payloads.flatMap((payload, index) => (typeof payload === 'string' ? [] : index));
  const texts = payloads.map((payload) =>
    typeof payload === 'string' ? payload : Buffer.from(payload).toString('base64'),
  );
  return frame({ ...rest, chars: texts.map((text) => text.length), binary }, texts);
}

/** The child trusts its parent, so there are no checks. */
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

/** Returns the frame of a reply: JSON with the size of each output in bytes, then the outputs. */
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

/** Throws if anything is malformed: a function may have taken over the child. */
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

function decodeAnswer(answer: unknown, cut: (size: unknown) => string): CallAnswer {
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
  if (kind === 'dropped' || kind === 'compiled') return { kind, logs, durationMs };
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

/** Reassembles frames from a stream of bytes. */
export class FrameReader {
  readonly #maxBytes: number;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #wanted = HEAD_BYTES;
  #inBody = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the bodies of the completed frames. Throws if a frame is larger than allowed. */
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
