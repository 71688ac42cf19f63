import type { Attempted } from '../../model/destination.js';
import type { RequestFailure } from './failure.js';
import type { RequestResult } from './sender.js';

export function resultOf(
  answer: RequestResult,
  target: string,
  sentAtMs: number,
  durationMs: number,
): Attempted {
  const { status, headers, body, remark } = answer;
  const delivered = answer.failure === null && status !== null && status >= 200 && status < 300;
  const failure = delivered ? null : (answer.failure ?? statusFailure(status, remark));
  const outcome = delivered ? 'delivered' : status === 410 ? 'gone' : 'retry';
  const afterSeconds =
    outcome === 'retry' ? retryAfterSeconds(headers['retry-after'], sentAtMs + durationMs) : null;
  return {
    outcome,
    afterSeconds,
    isOverloaded:
      outcome === 'retry' && (afterSeconds !== null || status === 429 || status === 503),
    mayRetryAtOnce: answer.isIdleLoss === true,
    target,
    code: status,
    failure: failure?.class ?? null,
    detail: failure?.message ?? remark ?? null,
    headers: status === null ? null : headers,
    body,
    isUp: failure === null || isUp(failure.class, status),
    sentAtMs,
    durationMs,
  };
}

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

function statusFailure(status: number | null, remark = ''): RequestFailure {
  return { class: 'status', message: `The endpoint answered ${status}. ${remark}`.trim() };
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
