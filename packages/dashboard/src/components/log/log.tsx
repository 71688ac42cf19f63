import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { param, setQuery } from '../../router/location.js';
import { timeCell } from '../data.js';
import { useRowKeys } from '../shortcuts.js';

export interface LogColumn<Row> {
  readonly name: string;
  /** A CSS grid width, such as `minmax(8rem, 1fr)`. */
  readonly width: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** On phones. Default: the first line. */
  readonly narrow?: 'second' | 'hidden';
  readonly isNumber?: boolean;
  readonly note?: string;
  /** The rows are in the order of this column, so that its heading reverses them. */
  readonly isOrder?: boolean;
  /** The API's `sortBy`, and whether it begins with the smallest. */
  readonly sort?: { readonly by: string; readonly isUp?: true; readonly label?: string };
}

const ROW_PX = 33;
const NARROW_ROW_PX = 58;
/** Rendered above and below the viewport. */
const MARGIN_ROWS = 12;
/**
 * More rows are loaded when fewer than this remain, so that they arrive before the user scrolls
 * there.
 */
const AHEAD_ROWS = 100;
const narrow = typeof matchMedia === 'undefined' ? undefined : matchMedia('(max-width: 40rem)');

/**
 * Renders only the visible rows. The first cell links to the row's page, and the keys `j` and `k`
 * move through the rows.
 *
 * @param props.onEnd loads more rows when the end is near
 * @param props.onScroll reports whether the beginning is visible
 */
export function Log<Row extends { readonly uid: string }>({
  label,
  columns,
  rows,
  hasMore,
  hrefOf,
  onEnd,
  onScroll,
  onRow,
}: {
  label: string;
  columns: readonly LogColumn<Row>[];
  rows: readonly Row[];
  hasMore: boolean;
  hrefOf: (row: Row) => string;
  onEnd: () => void;
  onScroll?: (isAtStart: boolean) => void;
  onRow?: (row: Row) => void;
}) {
  const body = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ top: 0, height: 800 });
  const [isNarrow, setNarrow] = useState(narrow?.matches ?? false);
  const wanted = useRef<number | undefined>(undefined);
  const rowPx = isNarrow ? NARROW_ROW_PX : ROW_PX;

  useLayoutEffect(() => {
    const it = body.current;
    if (!it) return undefined;
    const look = () => setSeen({ top: it.scrollTop, height: it.clientHeight });
    const resized = new ResizeObserver(look);
    resized.observe(it);
    const turned = () => setNarrow(narrow?.matches ?? false);
    narrow?.addEventListener('change', turned);
    return () => {
      resized.disconnect();
      narrow?.removeEventListener('change', turned);
    };
  }, []);

  const from = Math.max(0, Math.floor(seen.top / rowPx) - MARGIN_ROWS);
  const to = Math.min(rows.length, Math.ceil((seen.top + seen.height) / rowPx) + MARGIN_ROWS);

  useEffect(() => {
    if (hasMore && to > rows.length - AHEAD_ROWS) onEnd();
  }, [hasMore, to, rows.length]);

  const noteRow = useRowKeys(rows.length, (index) => {
    const it = body.current;
    if (!it) return;
    wanted.current = index;
    const top = index * rowPx;
    if (top < it.scrollTop) it.scrollTop = top;
    else if (top + rowPx > it.scrollTop + it.clientHeight)
      it.scrollTop = top + rowPx - it.clientHeight;
    setSeen({ top: it.scrollTop, height: it.clientHeight });
    focusRow();
  });

  /** After the next rendering if the row is not rendered yet. */
  const focusRow = () => {
    const link = body.current?.querySelector<HTMLElement>(`[data-row="${wanted.current}"] a`);
    if (!link) return;
    wanted.current = undefined;
    link.focus({ preventScroll: true });
  };
  useLayoutEffect(() => {
    if (wanted.current !== undefined) focusRow();
  });

  const template = isNarrow ? undefined : columns.map(({ width }) => width).join(' ');
  return (
    <div class="log" role="table" aria-label={label} aria-rowcount={hasMore ? -1 : rows.length + 1}>
      <div class="log-head" role="rowgroup">
        <div role="row" style={{ gridTemplateColumns: template }}>
          {columns.map(
            ({ name, note, isNumber, isOrder, sort = isOrder ? BY_TIME : undefined }) => (
              <span
                key={name}
                role="columnheader"
                class={isNumber ? 'end' : ''}
                aria-sort={
                  sort?.by === param('by')
                    ? isOldestFirst()
                      ? 'ascending'
                      : 'descending'
                    : undefined
                }
              >
                {sort ? <Order name={name} {...sort} /> : name}{' '}
                {note && <span class="unit">{note}</span>}
              </span>
            ),
          )}
        </div>
      </div>
      <div
        ref={body}
        class="log-body"
        role="rowgroup"
        onScroll={({ currentTarget: it }) => {
          setSeen({ top: it.scrollTop, height: it.clientHeight });
          onScroll?.(it.scrollTop < rowPx / 2);
        }}
      >
        <div class="log-room" role="presentation" style={{ height: `${rows.length * rowPx}px` }}>
          {rows.slice(from, to).map((row, offset) => {
            const index = from + offset;
            return (
              <div
                key={row.uid}
                class={`log-row${isNarrow ? ' narrow' : ''}`}
                role="row"
                aria-rowindex={index + 2}
                data-row={index}
                style={{
                  transform: `translateY(${index * rowPx}px)`,
                  height: `${rowPx}px`,
                  gridTemplateColumns: template,
                }}
                onFocusIn={() => {
                  noteRow(index);
                  onRow?.(row);
                }}
              >
                {columns.map(({ name, cell, narrow: place, isNumber }, column) => (
                  <span
                    key={name}
                    role="cell"
                    class={`cut ${place ?? ''}${isNumber ? ' number end' : ''}`}
                  >
                    {column === 0 ? (
                      <a class="log-link" href={hrefOf(row)}>
                        {cell(row)}
                      </a>
                    ) : (
                      cell(row)
                    )}
                  </span>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

export const messageTime = {
  name: 'Time',
  ...timeCell('occurred_at', 'row'),
  width: '8.5rem',
  narrow: 'second',
  isOrder: true,
} as const;

/** The order of ids, which begin with a time. */
const BY_TIME = { by: '' };

export function isOldestFirst(): boolean {
  return param('sort') === 'ASC';
}

/** Sorts by its column, then reverses that, then returns to the list's own order. */
function Order({
  name,
  by,
  isUp: startsUp,
  label = name,
}: { name: string } & NonNullable<LogColumn<never>['sort']>) {
  const isUp = isOldestFirst();
  const isSorted = param('by') === by;
  const isReversed = isUp !== (startsUp ?? false);
  const next = !isSorted
    ? { by, sort: startsUp ? 'ASC' : undefined }
    : isReversed
      ? { by: undefined, sort: undefined }
      : { sort: startsUp ? undefined : 'ASC' };
  const title =
    by !== '' || !isSorted
      ? `Sort by ${label.toLowerCase()}`
      : isUp
        ? 'Show newest first'
        : 'Show oldest first';
  return (
    <button type="button" title={title} onClick={() => setQuery(next)}>
      {name} {isSorted && (isUp ? '↑' : '↓')}
    </button>
  );
}
