/**
 * Every reason for which a call is refused, with what its author can do. The sentence that a person reads is what happened in this
 * call, then the fix from here.
 */
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
  payload_not_json: 'Hand the payload over as JSON text; encode any other text as a JSON string.',
  crashed: 'The system may have killed it for want of memory: look at its log, and try the message again.',
} as const satisfies Record<string, string>;

export type RefusalCode = keyof typeof REFUSALS;

/** The part of a result that tells why there is none. */
export interface Refusal {
  kind: 'refused';
  code: RefusalCode;
  reason: string;
}

/**
 * A refusal with its sentence. `happened` is one sentence about this call, with its full stop; `fix` replaces the one of the table
 * where the call tells more.
 */
export function refuse(code: RefusalCode, happened: string, fix: string = REFUSALS[code]): Refusal {
  return { kind: 'refused', code, reason: `${happened} ${fix}` };
}

/** How often a call may have died with its process before it is held to be the cause. */
export const DEATHS_TOLERATED = 3;

/** The refusals that only the parent can tell, because the process of the call is dead. */
export function refuseOverrun(deadlineMs: number): Refusal {
  return refuse('timeout', `The function did not answer within its deadline of ${deadlineMs} ms.`);
}

/** The machine was too busy to run the function. */
export function refuseStarved(deadlineMs: number, cpuMs: number): Refusal {
  return refuse(
    'timeout',
    `The function did not answer within its deadline of ${deadlineMs} ms, in which it had ${cpuMs} ms of processor time.`,
    'The machine has more to do than it can: give it room, and try the message again.',
  );
}

export function refuseMemory(memoryMb: number): Refusal {
  return refuse('memory', `The function used up the ${memoryMb} MB of memory that it may use.`);
}

export function refuseCrash(): Refusal {
  return refuse('crashed', `The process that ran the function died ${DEATHS_TOLERATED} times during this call.`);
}

export function isRefusalCode(value: unknown): value is RefusalCode {
  return typeof value === 'string' && Object.hasOwn(REFUSALS, value);
}
