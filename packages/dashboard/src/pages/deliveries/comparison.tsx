import type { DeliveryAttempt } from '@gateway/client';
import { useState } from 'preact/hooks';
import { Table, type TableColumn } from '../../components/data.js';
import { Select } from '../../components/field.js';
import { headerLines } from '../../format/json.js';
import { localTime, milliseconds } from '../../format/time.js';
import { failureWords } from '../../portal/attempts.js';
import { isPortal } from '../../router/location.js';
import { answerOf } from './attempt.js';

interface Row {
  readonly uid: string;
  readonly one: string;
  readonly other: string;
}

/** Folded. */
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
  const rows = rowsOf(one, other);
  const columns: readonly TableColumn<Row>[] = [
    { name: 'Field', cell: ({ uid }) => uid },
    { name: `Attempt ${one.number}`, cell: (row) => <pre class="compared">{row.one}</pre> },
    { name: `Attempt ${other.number}`, cell: (row) => <pre class="compared">{row.other}</pre> },
  ];
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
      <Table label="Comparison" columns={columns} rows={rows} />
    </>
  );
}

function errorOf(attempt: DeliveryAttempt): string {
  const isFailure = attempt.error_class !== null;
  if (isPortal.value) return isFailure ? failureWords(attempt).sentence : '–';
  return attempt.error ?? '–';
}

/** The requests differ only in time and URL. */
function rowsOf(one: DeliveryAttempt, other: DeliveryAttempt): Row[] {
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
    .map(([uid, textOf]) => ({ uid, one: textOf(one), other: textOf(other) }))
    .filter((row) => row.one !== row.other);
}
