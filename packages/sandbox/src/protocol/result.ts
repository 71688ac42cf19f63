import type { RefusalCode } from './refusals.js';

interface CallFacts {
  /** What the function wrote to its console, bounded. Empty if its process had to be killed. */
  logs: string[];
  /** Milliseconds to read the payload, run the function and write its output. */
  durationMs: number;
}

/** The result of one payload. */
export type TransformResult =
  /** The function returned an object: its JSON text. */
  | ({ kind: 'object'; json: string } & CallFacts)
  /** The function returned an array of objects, several events: the JSON text of each, in order. Never empty. */
  | ({ kind: 'array'; items: string[] } & CallFacts)
  /** The function returned null or an empty array: the message is dropped on purpose. */
  | ({ kind: 'dropped' } & CallFacts)
  /** The call failed. `reason` tells the author what happened, where, and what to change. */
  | ({
      kind: 'refused';
      code: RefusalCode;
      reason: string;
      /** The call overran because the machine was too busy to run it; the function may be good. */
      starved?: true;
    } & CallFacts);

/** The result of `Sandbox.check`. */
export type CheckResult = { ok: true } | { ok: false; code: RefusalCode; reason: string };

/**
 * The sandbox itself failed, not the function: no process can be started, or the sandbox was closed. The payloads may be run again later. Never the
 * fault of a message.
 */
export class SandboxError extends Error {
  readonly fix: string;

  constructor(message: string, options: { fix: string; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = 'SandboxError';
    this.fix = options.fix;
  }
}
