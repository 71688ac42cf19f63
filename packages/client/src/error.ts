/** What an error of the API says. */
interface Problem {
  readonly message: string;
  readonly code: string;
  readonly fix: string;
  readonly errors?: readonly { readonly field: string; readonly sentence: string }[];
  readonly request_id?: string;
}

/** An answer other than 2xx. Its message says what is wrong and what to do. */
export class GatewayApiError extends Error {
  override readonly name = 'GatewayApiError';
  /** The HTTP status. */
  readonly status: number;
  /** Stable; `unexpected_answer` when it was not the gateway that answered. */
  readonly code: string;
  readonly fix: string;
  /** Of invalid fields, each with its path. */
  readonly errors: readonly { readonly field: string; readonly sentence: string }[];
  readonly requestId: string | undefined;

  constructor(status: number, { message, code, fix, errors = [], request_id }: Problem) {
    super(`${message} (${fix})`);
    this.status = status;
    this.code = code;
    this.fix = fix;
    this.errors = errors;
    this.requestId = request_id;
  }
}
