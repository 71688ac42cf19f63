/** Fixes by refusal code, for the author of the function. A reason states the facts and the fix. */
export const REFUSALS = {
  not_compiled: 'Correct the text and save it again.',
  no_transform: 'Write: function transform(payload) { return { … }; }',
  threw: 'Change the function so that it takes this payload too, or returns null to drop it.',
  timeout:
    'Look for a loop that does not end with this payload, or a regular expression that backtracks.',
  memory: 'Look for an array or a text that grows without bound with this payload.',
  output_too_large: 'Return only the fields that the receivers need, or fewer items.',
  promise:
    'Nothing in the sandbox is asynchronous: remove async and await, and return the value itself.',
  not_an_object:
    'Return an object, an array of objects for several events, or null to drop the message.',
  not_json:
    'Return plain values only: texts, numbers, booleans, null, arrays and objects of these.',
  crashed:
    'The system may have killed it for lack of memory: check its log, then try the message again.',
} as const satisfies Record<string, string>;

export type RefusalCode = keyof typeof REFUSALS;

export interface Refusal {
  kind: 'refused';
  code: RefusalCode;
  reason: string;
}

/**
 * @param happened one sentence about this call, with its full stop
 * @param fix replaces the fix of the table
 */
export function refuse(code: RefusalCode, happened: string, fix: string = REFUSALS[code]): Refusal {
  return { kind: 'refused', code, reason: `${happened} ${fix}` };
}

interface CallFacts {
  /** Console output, bounded. Empty if the process had to be killed. */
  logs: string[];
  /** Milliseconds to read the payload, run the function and write its output. */
  durationMs: number;
}

export type TransformResult =
  /** JSON text of the returned object. */
  | ({ kind: 'object'; json: string } & CallFacts)
  /** JSON texts of a returned array of objects: several events, in order. Never empty. */
  | ({ kind: 'array'; items: string[] } & CallFacts)
  /** The function returned null or an empty array: the message is dropped on purpose. */
  | ({ kind: 'dropped' } & CallFacts)
  /** The call failed. `reason` states what happened, where, and what to change. */
  | ({
      kind: 'refused';
      code: RefusalCode;
      reason: string;
      /** The machine was too busy to run the call; the function may be fine. */
      starved?: true;
    } & CallFacts);

export type CheckResult = { ok: true } | { ok: false; code: RefusalCode; reason: string };

/** The sandbox failed, not the function or the message. The payloads may be run again later. */
export class SandboxError extends Error {
  readonly fix: string;

  constructor(message: string, options: { fix: string; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = 'SandboxError';
    this.fix = options.fix;
  }
}
