/** Every reason for which a call is refused, with the fix for its author. The reason that a person reads is what happened, then the fix. */
export const REFUSALS = {
  not_compiled: 'Correct the text and save it again.',
  no_transform: 'Write: function transform(payload) { return { … }; }',
  threw: 'Change the function so that it takes this payload too, or returns null to drop it.',
  timeout: 'Look for a loop that does not end with this payload, or a regular expression that backtracks.',
  memory: 'Look for an array or a text that grows without bound with this payload.',
  output_too_large: 'Return only the fields that the receivers need, or fewer items.',
  promise: 'Nothing in the sandbox is asynchronous: remove async and await, and return the value itself.',
  not_an_object: 'Return an object, an array of objects for several events, or null to drop the message.',
  not_json: 'Return plain values only: texts, numbers, booleans, null, arrays and objects of these.',
  payload_not_json: 'Pass the payload as JSON text; encode any other text as a JSON string.',
  crashed: 'The system may have killed it for lack of memory: check its log, then try the message again.',
} as const satisfies Record<string, string>;

export type RefusalCode = keyof typeof REFUSALS;

export interface Refusal {
  kind: 'refused';
  code: RefusalCode;
  reason: string;
}

/** @param happened one sentence about this call, with its full stop
 * @param fix replaces the one of the table */
export function refuse(code: RefusalCode, happened: string, fix: string = REFUSALS[code]): Refusal {
  return { kind: 'refused', code, reason: `${happened} ${fix}` };
}

/** Processes that may die during a call before it is refused as the cause. */
export const DEATHS_TOLERATED = 3;

export function refuseOverrun(deadlineMs: number): Refusal {
  return refuse('timeout', `The function did not answer within its deadline of ${deadlineMs} ms.`);
}

export function refuseStarved(deadlineMs: number, cpuMs: number): Refusal {
  return refuse(
    'timeout',
    `The function did not answer within its deadline of ${deadlineMs} ms, during which it got ${cpuMs} ms of processor time.`,
    'The machine is overloaded: reduce its load, then try the message again.',
  );
}

export function refuseMemory(memoryMb: number): Refusal {
  return refuse('memory', `The function exceeded its memory limit of ${memoryMb} MB.`);
}

export function refuseCrash(): Refusal {
  return refuse('crashed', `The process that ran the function died ${DEATHS_TOLERATED} times during this call.`);
}

export function isRefusalCode(value: unknown): value is RefusalCode {
  return typeof value === 'string' && Object.hasOwn(REFUSALS, value);
}
