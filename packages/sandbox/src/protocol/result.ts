/** Fixes for the function's author. A reason states the facts, then the fix. */
export const REFUSALS = {
  not_compiled: 'Correct the text and save it again.',
  no_transform: 'Write: function transform(payload) { return { … }; }',
  threw: 'Change the function to accept this payload, or to return null to drop it.',
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
    'The system may have killed it because memory ran out: check the system log, then try the message again.',
} as const satisfies Record<string, string>;

export type RefusalCode = keyof typeof REFUSALS;

export interface Refusal {
  kind: 'refused';
  code: RefusalCode;
  reason: string;
}

/**
 * @param happened one sentence about this call, with its full stop
 * @param fix replaces the code's fix in `REFUSALS`
 */
export function refuse(code: RefusalCode, happened: string, fix: string = REFUSALS[code]): Refusal {
  return { kind: 'refused', code, reason: `${happened} ${fix}` };
}

interface CallFacts {
  /** Limited in size. Empty if the process had to be killed. */
  logs: string[];
  /** To read the payload, run the function and write its output. */
  durationMs: number;
}

export type TransformResult =
  | ({ kind: 'object'; json: string } & CallFacts)
  /** Several events, in order. Never empty. */
  | ({ kind: 'array'; items: string[] } & CallFacts)
  /** The function returned null or an empty array. */
  | ({ kind: 'dropped' } & CallFacts)
  /** `reason` states what happened, where, and the fix. */
  | ({
      kind: 'refused';
      code: RefusalCode;
      reason: string;
      /** The machine was too busy to run the call. The function may be correct. */
      starved?: true;
    } & CallFacts);

/** The function and the message are not at fault. The payloads may be run again. */
export class SandboxError extends Error {
  readonly fix: string;

  constructor(message: string, options: { fix: string; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = 'SandboxError';
    this.fix = options.fix;
  }
}
