/**
 * Every reason for which a call is refused: what it means, and what its author can do. The sentence that a person reads is what
 * happened in this call, then the fix from here.
 */
export const REFUSALS = {
  not_compiled: {
    meaning: 'The text of the function is not JavaScript that the sandbox takes.',
    fix: 'Correct the text and save it again.',
  },
  no_transform: {
    meaning: 'The text does not define a function named transform.',
    fix: 'Write: function transform(payload) { return { … }; }',
  },
  threw: {
    meaning: 'The function threw.',
    fix: 'Change the function so that it takes this payload too, or returns null to drop it.',
  },
  timeout: {
    meaning: 'A call ran past its deadline.',
    fix: 'Look for a loop that does not end with this payload, or a regular expression that backtracks.',
  },
  memory: {
    meaning: 'A call used up the memory of its process.',
    fix: 'Look for an array or a text that grows without bound with this payload.',
  },
  output_too_large: {
    meaning: 'The output is larger than is allowed.',
    fix: 'Return only the fields that the receivers need, or fewer items.',
  },
  promise: {
    meaning: 'The function returned a promise.',
    fix: 'Nothing in the sandbox is asynchronous: remove async and await, and return the value itself.',
  },
  not_an_object: {
    meaning: 'The function returned something that is neither an object, nor an array of objects, nor null.',
    fix: 'Return an object, an array of objects for several events, or null to drop the message.',
  },
  not_json: {
    meaning: 'What the function returned has no JSON text.',
    fix: 'Return plain values only: texts, numbers, booleans, null, arrays and objects of these.',
  },
  payload_not_json: {
    meaning: 'The payload is not JSON text.',
    fix: 'Hand the payload over as JSON text; encode any other text as a JSON string.',
  },
  crashed: {
    meaning: 'The process died more than once during this call, without saying why.',
    fix: 'The system may have killed it for want of memory: look at its log, and try the message again.',
  },
} as const satisfies Record<string, { meaning: string; fix: string }>;

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
export function refuse(code: RefusalCode, happened: string, fix: string = REFUSALS[code].fix): Refusal {
  return { kind: 'refused', code, reason: `${happened} ${fix}` };
}

/** How often a call may have died with its process before it is held to be the cause. */
export const DEATHS_TOLERATED = 3;

/** The refusals that only the parent can tell, because the process of the call is dead. */
export function refuseOverrun(deadlineMs: number): Refusal {
  return refuse('timeout', `The function did not answer within its deadline of ${deadlineMs} ms.`);
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
