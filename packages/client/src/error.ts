interface Problem {
  readonly message: string;
  readonly code: string;
  readonly fix: string;
  readonly errors?: readonly { readonly field: string; readonly sentence: string }[];
  readonly conflict?: string;
  readonly request_id?: string;
}

/**
 * The error for a response that has a status other than 2xx or does not come from the gateway. The
 * message includes the fix.
 */
export class GatewayApiError extends Error {
  override readonly name = 'GatewayApiError';
  readonly status: number;
  /** The stable error code, or `unexpected_answer` if another server responded. */
  readonly code: string;
  readonly fix: string;
  /** The invalid fields, each with its path. */
  readonly errors: readonly { readonly field: string; readonly sentence: string }[];
  /** The code of the state that does not allow the request. */
  readonly conflict: string | undefined;
  readonly requestId: string | undefined;

  constructor(status: number, { message, code, fix, errors = [], conflict, request_id }: Problem) {
    super(`${message} (${fix})`);
    this.status = status;
    this.code = code;
    this.fix = fix;
    this.errors = errors;
    this.conflict = conflict;
    this.requestId = request_id;
  }
}
