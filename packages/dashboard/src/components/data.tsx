import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { List } from '../api/index.js';
import { pretty } from '../format/json.js';
import { bytes } from '../format/number.js';
import { clip, own } from '../format/text.js';
import { localTime, relative, rowTime, utcTime, zoneName } from '../format/time.js';
import { href } from '../router/location.js';
import { may } from '../session/session.js';
import { Loading, Problem } from './feedback.js';
import { Button } from './layout.js';

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'plain';

const TONES: Readonly<Record<string, Tone>> = {
  success: 'ok',
  processed: 'ok',
  active: 'ok',
  running: 'ok',
  ok: 'ok',
  replayed: 'ok',
  retry: 'warn',
  paused: 'warn',
  degraded: 'warn',
  'half-open': 'warn',
  failure: 'bad',
  failed: 'bad',
  inactive: 'bad',
  open: 'bad',
  down: 'bad',
  quarantined: 'bad',
  scheduled: 'info',
  processing: 'info',
  pending: 'info',
};

export function Badge({
  status,
  tone = own(TONES, status) ?? 'plain',
  label = status,
}: {
  status: string;
  tone?: Tone;
  label?: string;
}) {
  return <span class={`badge ${tone}`}>{label}</span>;
}

/**
 * Longer text is truncated until the user expands it, because a browser needs seconds to lay out a
 * megabyte.
 */
const SHOWN_MAX = 50_000;

interface CodeProps {
  readonly text: string;
  readonly label: string;
  readonly isRaw?: boolean;
  readonly isTable?: boolean;
}

/**
 * Never rendered as HTML. JSON is indented unless `isRaw` is set. With `isTable`, lines do not
 * wrap.
 */
export function Code({ text, label, isRaw = false, isTable = false }: CodeProps) {
  const [isWhole, setWhole] = useState(false);
  const laidOut = isRaw ? text : pretty(text);
  const isCut = !isWhole && laidOut.length > SHOWN_MAX;
  return (
    <figure class="code">
      <figcaption>
        <span>{label}</span>
        <Copy text={text} what={label} />
      </figcaption>
      {/* A scrolling region must be reachable by keyboard. */}
      <pre class={isTable ? 'unwrapped' : undefined} tabIndex={0} aria-label={label}>
        {isCut ? clip(laidOut, SHOWN_MAX, '') : laidOut}
      </pre>
      {isCut && <Button onPress={() => setWhole(true)}>Show all {bytes(laidOut.length)}</Button>}
    </figure>
  );
}

const TOLD_MS = 1_500;

function Copy({ text, what }: { text: string; what: string }) {
  const [told, setTold] = useState('');
  const tell = (word: string) => {
    setTold(word);
    setTimeout(() => setTold(''), TOLD_MS);
  };
  const copy = () =>
    void copyText(text).then(
      () => tell('Copied'),
      () => tell('Not copied'),
    );
  return (
    <span class="copy">
      <Button kind="quiet" label={`${told || 'Copy'} ${what}`} onPress={copy}>
        {told || 'Copy'}
      </Button>
      <span class="spoken" role="status">
        {told}
      </span>
    </span>
  );
}

/**
 * Falls back to `execCommand`, because `navigator.clipboard` exists only on HTTPS and localhost.
 */
async function copyText(text: string): Promise<void> {
  if ('clipboard' in navigator) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  if (!isCopied) throw new Error('the browser refused to copy');
}

export function Copyable({ text, what }: { text: string; what: string }) {
  return (
    <span class="copyable">
      <code>{text}</code>
      <Copy text={text} what={what} />
    </span>
  );
}

export function NewSecret({
  what,
  secret,
  children,
}: {
  what: string;
  secret: string;
  children?: ComponentChildren;
}) {
  return (
    <div class="notice ok new-secret" role="status">
      <p class="new-secret-title">Copy the {what} now. It is shown only once.</p>
      <Copyable text={secret} what={what} />
      {children}
    </div>
  );
}

export function Muted({ text }: { text: string | null | undefined }) {
  return (
    <span class="muted" title={text ?? undefined}>
      {text}
    </span>
  );
}

/** Omits rows whose value is null, undefined or false. */
export function Facts({ rows }: { rows: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl class="facts">
      {Object.entries(rows)
        .filter(([, value]) => value !== null && value !== undefined && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Rows of `Facts` about a resource. */
export function changeFacts(it: {
  uid: string;
  created_at: string;
  updated_at: string;
}): Record<string, ComponentChildren> {
  return {
    Created: <FullTime at={it.created_at} />,
    'Last change': (
      <>
        <FullTime at={it.updated_at} />{' '}
        {may('admin') && <a href={href(`/audit?search=${it.uid}`)}>History</a>}
      </>
    ),
  };
}

/** For a usually short list: its first page, and a button that loads more. */
export function Paged<Row>({
  list: { rows, error, hasMore, refresh, loadMore },
  lines = 4,
  children,
}: {
  list: List<Row>;
  lines?: number;
  children: (rows: readonly Row[]) => ComponentChildren;
}) {
  return (
    <>
      {error && <Problem error={error} retry={refresh} />}
      {rows ? children(rows) : !error && <Loading lines={lines} />}
      {hasMore && rows && (
        <div>
          <Button onPress={loadMore}>Show more</Button>
        </div>
      )}
    </>
  );
}

type Cell<Row> = (row: Row) => ComponentChildren;

/** By their names. Those that are false are omitted. */
export type TableColumns<Row> = Readonly<
  Record<
    string,
    | Cell<Row>
    | {
        readonly cell: Cell<Row>;
        readonly isNumber?: boolean;
        /** Beside the name, such as the time zone. */
        readonly note?: string;
      }
    | false
  >
>;

/** Its cells hold the buttons of their row. */
const ACTIONS = 'Actions';

/**
 * For rows that fit on a page; long lists use `Log`. On phones, each row is a card that labels its
 * values.
 */
export function Table<Row>({
  label,
  columns,
  rows,
  idOf = (row) => (row as { readonly uid: string }).uid,
}: {
  label: string;
  columns: TableColumns<Row>;
  rows: readonly Row[];
  idOf?: (row: Row) => string;
}) {
  const shown = Object.entries(columns).flatMap(([name, it]) =>
    it
      ? [{ name, isNumber: false, note: '', ...(typeof it === 'function' ? { cell: it } : it) }]
      : [],
  );
  return (
    <div class="table" role="group" aria-label={label} tabIndex={0}>
      {/* Explicit roles: some screen readers ignore a table whose `display` is overridden. */}
      <table role="table">
        <thead role="rowgroup">
          <tr role="row">
            {shown.map(({ name, isNumber, note }) => (
              <th key={name} role="columnheader" scope="col" class={isNumber ? 'number-cell' : ''}>
                {name} {note && <span class="unit">{note}</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={idOf(row)} role="row">
              {shown.map(({ name, cell, isNumber }) => (
                <td
                  key={name}
                  role="cell"
                  data-name={name}
                  class={isNumber ? 'number number-cell' : ''}
                >
                  <div class={name === ACTIONS ? 'row-actions' : ''}>{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** For relative times, updated every second. */
const now = signal(Date.now());
if (typeof document !== 'undefined')
  setInterval(() => document.hidden || (now.value = Date.now()), 1_000);

/** In the browser's time zone, with UTC in the tooltip. */
export function Time({ at, look = 'full' }: { at: string; look?: 'full' | 'row' | 'relative' }) {
  const text =
    look === 'row' ? rowTime(at) : look === 'relative' ? relative(at, now.value) : localTime(at);
  return (
    <time
      class="number"
      dateTime={at}
      title={look === 'full' ? utcTime(at) : `${localTime(at)} (${utcTime(at)})`}
    >
      {text}
    </time>
  );
}

/** For a column of times. `otherwise` replaces null. */
export function timeCell<Field extends string>(
  field: Field,
  look: 'row' | 'relative' = 'relative',
  otherwise?: string,
) {
  return {
    ...(look === 'row' && { note: zoneName() }),
    cell: (row: { readonly [It in Field]: string | null }) =>
      row[field] === null ? otherwise : <Time at={row[field]} look={look} />,
  };
}

/** For incidents: in the browser's zone, in UTC if that differs, and relative to now. */
export function FullTime({ at }: { at: string }) {
  return (
    <>
      <Time at={at} />{' '}
      <span class="muted number">
        {zoneName() !== 'UTC' && `${utcTime(at)}, `}
        <Time at={at} look="relative" />
      </span>
    </>
  );
}
