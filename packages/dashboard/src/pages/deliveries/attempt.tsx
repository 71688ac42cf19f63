import type { DeliveryAttempt } from '@gateway/client';
import { useState } from 'preact/hooks';
import { Badge, Code, Select, Table, type TableColumns, Time } from '../../components/index.js';
import { headerLines } from '../../format/json.js';
import { localTime, milliseconds } from '../../format/time.js';
import { failureWords } from '../../portal/attempts.js';
import { isPortal } from '../../router/location.js';

/** Such as `200` or `connection refused`. */
export function answerOf(attempt: DeliveryAttempt): string {
  const { http_status: status, error, error_class: kind } = attempt;
  if (isPortal.value && kind !== null) return failureWords(attempt).label;
  if (kind === 'function') return 'function failed';
  return status === null ? (error ?? 'no response') : String(status);
}

export function Attempt({ attempt, isOpen }: { attempt: DeliveryAttempt; isOpen: boolean }) {
  const {
    number,
    status,
    requested_at: at,
    duration_ms: ms,
    response_headers: headers,
    response_body: body,
  } = attempt;
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
      {isPortal.value ? <OwnerProblem attempt={attempt} /> : <AttemptProblem attempt={attempt} />}
      {headers !== null && (
        <div class="columns attempt-sides">
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

function AttemptProblem({ attempt }: { attempt: DeliveryAttempt }) {
  const { url, error, error_class: kind, response_headers: headers } = attempt;
  if (kind === 'function') {
    return (
      <p class="attempt-error">
        No request was sent because the function of the subscription failed. {error}
      </p>
    );
  }
  if (headers === null) {
    return (
      <p class="attempt-error">
        No response from <span class="mono">{url}</span>: {error ?? 'unknown reason'}.
      </p>
    );
  }
  return error ? <p class="attempt-error">{error}</p> : null;
}

/** For the endpoint's owner, with what to do. */
export function OwnerProblem({ attempt }: { attempt: DeliveryAttempt }) {
  if (attempt.error_class === null) {
    return attempt.error_code === 'incomplete_response' ? (
      <p class="attempt-error">Your server accepted the message, but did not finish its answer.</p>
    ) : null;
  }
  const { sentence, remedy } = failureWords(attempt);
  return (
    <p class="attempt-error">
      {sentence} {remedy}
    </p>
  );
}

export function Comparison({ attempts }: { attempts: readonly DeliveryAttempt[] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="more-fields" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Compare two attempts</summary>
      {isOpen && <Compared attempts={attempts} />}
    </details>
  );
}

/** By default, the newest attempt and the one before. */
function Compared({ attempts }: { attempts: readonly DeliveryAttempt[] }) {
  const [chosen, setChosen] = useState<readonly [string?, string?]>([]);
  const find = (side: 0 | 1) =>
    attempts.find(({ uid }) => uid === chosen[side]) ?? attempts[side === 0 ? 1 : 0]!;
  const [one, other] = [find(0), find(1)];
  const options = attempts.map(({ uid, number }) => [uid, `Attempt ${number}`] as const);
  const columns: TableColumns<readonly [field: string, one: string, other: string]> = {
    Field: ([field]) => field,
    [`Attempt ${one.number}`]: ([, text]) => <pre class="compared">{text}</pre>,
    [`Attempt ${other.number}`]: ([, , text]) => <pre class="compared">{text}</pre>,
  };
  return (
    <>
      <div class="field-row">
        <Select
          label="First"
          value={one.uid}
          options={options}
          onChange={(uid) => setChosen([uid, other.uid])}
        />
        <Select
          label="Second"
          value={other.uid}
          options={options}
          onChange={(uid) => setChosen([one.uid, uid])}
        />
      </div>
      <Table
        label="Comparison"
        columns={columns}
        rows={rowsOf(one, other)}
        idOf={([field]) => field}
      />
    </>
  );
}

function errorOf(attempt: DeliveryAttempt): string {
  const isFailure = attempt.error_class !== null;
  if (isPortal.value) return isFailure ? failureWords(attempt).sentence : '–';
  return attempt.error ?? '–';
}

function rowsOf(one: DeliveryAttempt, other: DeliveryAttempt) {
  const facts: readonly (readonly [string, (it: DeliveryAttempt) => string])[] = [
    ['Response', answerOf],
    ['Error', errorOf],
    ['Sent', ({ requested_at: at }) => localTime(at)],
    ['Duration', ({ duration_ms: ms }) => milliseconds(ms)],
    ['URL', ({ url }) => url],
    ['Response headers', ({ response_headers: headers }) => headerLines(headers ?? {})],
    ['Response body', ({ response_body: body }) => body ?? '–'],
  ];
  return facts
    .map(([field, textOf]) => [field, textOf(one), textOf(other)] as const)
    .filter(([, before, after]) => before !== after);
}
