import { maskUrls } from '../logging/redaction.js';
import type { ErrorRow, None } from './error-row.js';
import { errors } from './error-table.js';

export type ErrorCode = keyof typeof errors;
type ErrorDetails<Code extends ErrorCode> = Parameters<
  (typeof errors)[Code]['message'] | (typeof errors)[Code]['fix']
>[0];
type ErrorArguments<Code extends ErrorCode> =
  None extends ErrorDetails<Code>
    ? [details?: ErrorDetails<Code>, options?: { cause?: unknown }]
    : [details: ErrorDetails<Code>, options?: { cause?: unknown }];

/** The code determines the message, fix, exit status and HTTP status. */
export class GatewayError<Code extends ErrorCode = ErrorCode> extends Error {
  readonly code: Code;
  readonly fix: string;
  readonly exitStatus: 1 | 2;
  readonly httpStatus: number;
  readonly details: ErrorDetails<Code>;

  constructor(code: Code, ...[details, options]: ErrorArguments<Code>) {
    const it = errors[code] as ErrorRow<unknown>;
    const known = (details ?? {}) as ErrorDetails<Code>;
    // Mask credentials in URLs: details may be addresses, and drivers quote their arguments.
    super(maskUrls(it.message(known)), options);
    this.name = 'GatewayError';
    this.code = code;
    this.details = known;
    this.fix = maskUrls(it.fix(known));
    this.exitStatus = it.exit;
    this.httpStatus = it.http;
  }

  override toString(): string {
    return `${this.message}\n${this.fix}`;
  }
}

/** With the given code, if any. */
export function isGatewayError<Code extends ErrorCode>(
  error: unknown,
  code?: Code,
): error is GatewayError<Code> {
  // A package that is installed with `npm install -g` has a copy of this class of its own.
  return (
    error instanceof Error &&
    error.name === 'GatewayError' &&
    (code === undefined || (error as GatewayError).code === code)
  );
}
