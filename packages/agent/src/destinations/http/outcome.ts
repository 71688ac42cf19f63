import type { Attempted } from '../../model/destination.js';
import type { RequestResult } from './sender.js';

/** Classifies the answer to a delivery. */
export function resultOf(
  answer: RequestResult,
  sent: Pick<Attempted, 'target' | 'sentAtMs' | 'durationMs'>,
): Attempted {
  const { status, headers, body, remark } = answer;
  const delivered = answer.failure === null && status !== null && status >= 200 && status < 300;
  const message = `The endpoint answered ${status}. ${remark ?? ''}`.trim();
  const failure = delivered ? null : (answer.failure ?? { class: 'status' as const, message });
  const outcome = delivered ? 'delivered' : status === 410 ? 'gone' : 'retry';
  return {
    outcome,
    afterSeconds:
      outcome === 'retry'
        ? retryAfterSeconds(headers['retry-after'], sent.sentAtMs + sent.durationMs)
        : null,
    mayRetryAtOnce: answer.isIdleLoss === true,
    target: sent.target,
    code: status,
    failure: failure?.class ?? null,
    detail: failure?.message ?? remark ?? null,
    headers: status === null ? null : headers,
    body,
    isUp: failure === null || isUp(failure.class, status),
    sentAtMs: sent.sentAtMs,
    durationMs: sent.durationMs,
  };
}

/** Whether a failed request shows that the endpoint works. */
function isUp(failure: NonNullable<Attempted['failure']>, status: number | null): boolean | null {
  switch (failure) {
    case 'refused_address':
    case 'unsendable':
    case 'function':
    case 'proxy':
      return null;
    // A 4xx status shows that the endpoint is up, except for 408 and 429.
    case 'status':
      return status === null || (status < 500 && status !== 429 && status !== 408);
    default:
      return false;
  }
}

/** Parses a `Retry-After` header (RFC 9110 10.2.3). Returns null if it is missing or invalid. */
export function retryAfterSeconds(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text);
  // HTTP dates begin with a weekday. Other text is rejected, because `Date.parse` accepts nearly
  // any string that contains a number.
  const isDate = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text);
  // A date in asctime format has no time zone and is in UTC:
  // https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7
  const dateMs = isDate ? Date.parse(/([a-z]|[+-]\d{4})$/i.test(text) ? text : `${text} GMT`) : NaN;
  return Number.isNaN(dateMs) ? null : Math.max(0, (dateMs - nowMs) / 1000);
}
