import type { DeliveryAttempt, EventDelivery, SentEvent } from '@gateway/client';
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
  return status === null ? (error ?? 'no answer') : String(status);
}

/** One request of a delivery and its response. `isOpen` expands it. */
export function Attempt({
  attempt,
  delivery,
  event,
  isOpen,
}: {
  attempt: DeliveryAttempt;
  delivery: EventDelivery;
  event: SentEvent | undefined;
  isOpen: boolean;
}) {
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
      {error && attempt.http_status !== null && <p class="attempt-error">{error}</p>}
      <div class="attempt-sides">
        <section>
          <h3>Request</h3>
          {isSent ? (
            <>
              <Code isRaw label="Request headers" text={requestLines(attempt, delivery, event)} />
              {event && event.data !== null && (
                <Code label="Request body" text={JSON.stringify(event.data)} />
              )}
            </>
          ) : (
            <p class="muted">Nothing was sent: the function of the subscription failed.</p>
          )}
        </section>
        <section>
          <h3>Response</h3>
          {!isSent ? (
            <p class="attempt-error">{error}</p>
          ) : headers === null ? (
            <p class="muted">
              No response from <span class="mono">{url}</span>: {error ?? 'the reason is not known'}
              .
            </p>
          ) : (
            <Code
              isRaw
              label="Response headers"
              text={`HTTP ${attempt.http_status}\n${headerLines(headers)}`}
            />
          )}
          {body !== null && body !== '' && <Code label="Response body" text={body} />}
          {headers !== null && (body === null || body === '') && (
            <p class="muted">The response had no body.</p>
          )}
        </section>
      </div>
    </details>
  );
}

/**
 * Returns the request as it was sent, without signatures and authentication, which are not stored.
 */
function requestLines(
  { url, requested_at: at }: DeliveryAttempt,
  { uid }: EventDelivery,
  event: SentEvent | undefined,
): string {
  const { headers = {}, data_bytes: length } = event ?? {};
  const own = {
    'content-type': 'application/json',
    ...headers,
    ...(length === undefined ? {} : { 'content-length': String(length) }),
    'webhook-id': uid,
    'webhook-timestamp': String(Math.floor(new Date(at).getTime() / 1000)),
    'webhook-signature': '(made from the secrets, not kept)',
  };
  return `POST ${url}\n${headerLines(own)}`;
}
