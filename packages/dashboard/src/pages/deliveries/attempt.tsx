import type { DeliveryAttempt } from '@gateway/client';
import { Badge, Code, Time } from '../../components/data.js';
import { headerLines } from '../../format/json.js';
import { milliseconds } from '../../format/time.js';

/** Summarises the response, such as `200` or `connection refused`. */
export function answerOf({
  http_status: status,
  error,
  error_class: kind,
}: DeliveryAttempt): string {
  if (kind === 'function') return 'function failed';
  return status === null ? (error ?? 'no response') : String(status);
}

/** The response to a request of a delivery. `isOpen` expands it. */
export function Attempt({ attempt, isOpen }: { attempt: DeliveryAttempt; isOpen: boolean }) {
  const {
    number,
    status,
    url,
    requested_at: at,
    duration_ms: ms,
    response_headers: headers,
    response_body: body,
    error,
  } = attempt;
  const isSent = attempt.error_class !== 'function';
  const isBodyEmpty = body === null || body === '';
  return (
    <details class="attempt" open={isOpen}>
      <summary>
        <span>Attempt {number}</span>
        <Badge status={status ? 'success' : 'failure'} label={answerOf(attempt)} />
        <span class="muted number">{milliseconds(ms)}</span>
        <span class="muted attempt-time">
          <Time at={at} />
        </span>
      </summary>
      {error && isSent && attempt.http_status !== null && <p class="attempt-error">{error}</p>}
      {!isSent && (
        <p class="attempt-error">
          No request was sent because the function of the subscription failed. {error}
        </p>
      )}
      {isSent && headers === null && (
        <p class="attempt-error">
          No response from <span class="mono">{url}</span>: {error ?? 'unknown reason'}.
        </p>
      )}
      {headers !== null && (
        <div class="attempt-sides">
          {isBodyEmpty ? (
            <p class="muted">The response had no body.</p>
          ) : (
            <Code label="Response body" text={body} />
          )}
          <Code
            isRaw
            label="Response headers"
            text={`HTTP ${attempt.http_status}\n${headerLines(headers)}`}
          />
        </div>
      )}
    </details>
  );
}
