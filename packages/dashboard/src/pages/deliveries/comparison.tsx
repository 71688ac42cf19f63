import type { DeliveryAttempt } from '@gateway/client';
import { useState } from 'preact/hooks';
import { type TableColumns, Select, Table } from '../../components/index.js';
import { headerLines } from '../../format/json.js';
import { localTime, milliseconds } from '../../format/time.js';
import { failureWords } from '../../portal/attempts.js';
import { isPortal } from '../../router/location.js';
import { answerOf } from './attempt.js';

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
