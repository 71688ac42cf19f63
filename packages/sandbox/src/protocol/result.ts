import type { RefusalCode } from './refusals.js';

interface Told {
  /** What the function wrote to its console, bounded. Empty when its process had to be killed. */
  logs: string[];
  /** Milliseconds of the call: reading the payload, running the function and writing its output. */
  durationMs: number;
}

/** What became of one payload. */
export type TransformResult =
  /** The function returned an object: its JSON text. */
  | ({ kind: 'object'; json: string } & Told)
  /** The function returned an array of objects, several events: the JSON text of each, in order. Never empty. */
  | ({ kind: 'array'; items: string[] } & Told)
  /** The function returned null or an empty array: the message is dropped on purpose. */
  | ({ kind: 'dropped' } & Told)
  /** The call gave nothing that can be used. `reason` tells a person what happened, where, and what to change. */
  | ({
      kind: 'refused';
      code: RefusalCode;
      reason: string;
      /** The function may be good: it overran because the machine was too busy to run it. */
      starved?: true;
    } & Told);

/** What `Sandbox.check` found out about a text, without a payload. */
export type CheckResult = { ok: true } | { ok: false; code: RefusalCode; reason: string };
