import { Buffer } from 'node:buffer';
import { readSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { compileFunction } from 'node:vm';
import type * as Acorn from 'acorn';
import { call } from './call.js';
import { makeCompiler, mayMakePromises, type Instantiate } from './compile.js';
import { rememberErrorLines } from './describe.js';
import {
  makeGuestConsole,
  removeCopying,
  removeUntamed,
  stripHostGlobals,
} from './guest-globals.js';
import { progressWriter, STARTED } from '../protocol/progress.js';
import {
  decodeChunk,
  encodeReply,
  HEAD_BYTES,
  PROGRESS_FD,
  REPLY_FD,
  REQUEST_FD,
  type Chunk,
} from '../protocol/protocol.js';
import type { Refusal, TransformResult } from '../protocol/result.js';

// The entry point of a child process, started as `node child.js <file of ses> <file of
// acorn> <max output bytes>`.
// The parent enforces the deadline.
//
// The child reads a chunk, runs its calls one by one, writes the answers and reads the next chunk,
// until its standard input ends. It does nothing else, so its I/O may block.
//
// Promise callbacks must run under the deadline of their call. Each call of a function that may
// make promises therefore gets its own event-loop turn.

/**
 * Answers are flushed after this time or this many characters, so that little is lost when a call
 * ends the process.
 */
const FLUSH_MS = 5;
const FLUSH_CHARS = 256 * 1024;

const [, , sesFile = '', acornFile = '', maxOutput] = process.argv;
const maxOutputBytes = Number(maxOutput);

// The parent stops the child by closing its input. A signal to the process group, such as Ctrl-C,
// must not stop it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
const exit = process.exit.bind(process);
const { now } = performance;
const clock = now.bind(performance);

// Imports of other phases, if this V8 has them: `compile` refuses them too.
for (const [text, flag] of [
  ["import.source('')", '--no-js-source-phase-imports'],
  ["import.defer('')", '--no-js-defer-import-eval'],
] as const) {
  try {
    compileFunction(text);
    setFlagsFromString(flag);
  } catch {
    // This V8 does not have it, or has it turned off.
  }
}

// The single-file build of SES starts 25 ms faster than its sixty modules.
createRequire(sesFile)(sesFile);
const { parse } = createRequire(acornFile)(acornFile) as typeof Acorn;
// Created while the memory of typed arrays is still reachable.
const report = progressWriter(PROGRESS_FD);
const untamed = removeUntamed();
removeCopying();
lockdown({
  // Allows outputs with fields named `constructor` or `hasOwnProperty`.
  overrideTaming: 'severe',
  errorTrapping: 'none',
  unhandledRejectionTrapping: 'none',
  reporting: 'none',
  consoleTaming: 'unsafe',
});
rememberErrorLines();
untamed.forEach(harden);
const guest = makeGuestConsole();
const compile = makeCompiler({ console: guest.console, parse });
stripHostGlobals();

async function work(chunk: Chunk): Promise<void> {
  let answers: TransformResult[] = [];
  let chars = 0;
  let flushedAt = clock();

  const flush = (next: number): void => {
    // Report no call as running during the write: a call must not be blamed for a parent that reads
    // slowly.
    report(chunk.id, undefined);
    writeAll(encodeReply({ chunk: chunk.id, first: next - answers.length, answers }));
    answers = [];
    chars = 0;
    flushedAt = clock();
  };

  const count = chunk.payloads.length;
  const ownTurn = mayMakePromises(chunk.text);
  let compiled: Instantiate | Refusal | undefined;
  for (let index = 0; index < count; index += 1) {
    report(chunk.id, index);
    const startedAt = clock();
    compiled ??= compile(chunk.key, chunk.text);
    const outcome =
      typeof compiled === 'function'
        ? call(compiled, chunk.payloads[index]!, maxOutputBytes, chunk.messages?.[index])
        : compiled;
    // Resumes once no callback is pending.
    if (ownTurn) await setImmediate();
    const endedAt = clock();
    const durationMs = Math.round((endedAt - startedAt) * 1000) / 1000;
    const logs = guest.take();
    answers.push({ ...outcome, logs, durationMs });
    // The reason of a refused call is short and not counted.
    chars +=
      sizeOf(logs) +
      (outcome.kind === 'object'
        ? outcome.json.length
        : outcome.kind === 'array'
          ? sizeOf(outcome.items)
          : 0);
    if (index + 1 === count || endedAt - flushedAt >= FLUSH_MS || chars >= FLUSH_CHARS)
      flush(index + 1);
  }
}

function sizeOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}

function readExactly(count: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(count);
  for (let at = 0; at < count;) {
    const read = readSync(REQUEST_FD, bytes, at, count - at, null);
    if (read === 0) exit(0);
    at += read;
  }
  return bytes;
}

function writeAll(bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) at += writeSync(REPLY_FD, bytes, at);
}

report(STARTED, undefined);
writeAll(encodeReply({ chunk: STARTED, first: 0, answers: [] }));
for (;;) await work(decodeChunk(readExactly(readExactly(HEAD_BYTES).readUInt32LE(0))));
