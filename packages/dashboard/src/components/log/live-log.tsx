import type { Page as ApiPage } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { useList, type PageQuery } from '../../api/read.js';
import { utcTime } from '../../format/time.js';
import { query } from '../../router/location.js';
import { isAnyFilterSet } from './filter-bar.js';
import { Empty, Loading, Problem } from '../feedback.js';
import { Button } from '../layout.js';
import { useShortcuts } from '../shortcuts.js';
import { isOldestFirst, Log, type LogColumn } from './log.js';
import { isOpenEnded } from './time-range.js';

const LIVE_MS = 2_000;

/**
 * While the user reads further down, new rows are held back behind a button.
 *
 * @param props.name identifies the list, together with the filters in the query
 * @param props.children what to do if the list is empty without filters
 */
export function LiveLog<Row extends { readonly uid: string }>({
  label,
  name,
  columns,
  load,
  hrefOf,
  rowKey,
  children,
}: {
  label: string;
  name: string;
  columns: readonly LogColumn<Row>[];
  load: (page: PageQuery, signal: AbortSignal) => Promise<ApiPage<Row>>;
  hrefOf: (row: Row) => string;
  /** Acts on the focused row. */
  rowKey?: {
    readonly key: string;
    readonly label: string;
    readonly run: (row: Row) => void;
  };
  children: ComponentChildren;
}) {
  const isAtStart = useRef(true);
  const focused = useRef<Row | undefined>(undefined);
  useShortcuts(
    rowKey
      ? [
          {
            keys: rowKey.key,
            label: rowKey.label,
            run: () => focused.current && rowKey.run(focused.current),
          },
        ]
      : [],
  );
  const isFiltered = isAnyFilterSet();
  const order = isOldestFirst() ? ({ sort: 'ASC' } as const) : {};
  const ordered: typeof load = (page, signal) => load({ ...page, ...order }, signal);
  // A row that moves to another page would be shown twice, so a list in another order is not polled.
  const isLive =
    isOpenEnded() && !isOldestFirst() && !query.value.has('by') && !query.value.has('search');
  const list = useList(`${name} ${query.value.toString()}`, ordered, {
    everyMs: isLive ? LIVE_MS : undefined,
    isHeld: () => !isAtStart.current,
  });
  const { rows, error, freshCount, searchedTo } = list;
  return (
    <>
      {error && <Problem error={error} retry={list.refresh} />}
      {searchedTo && !error && (
        <p role="status">
          Searched back to {utcTime(searchedTo)}, for one second.{' '}
          <Button kind="quiet" onPress={list.loadMore}>
            Continue
          </Button>
        </p>
      )}
      {!rows && !error && <Loading lines={10} />}
      {rows?.length === 0 &&
        (isFiltered ? (
          <Empty title={`No ${label.toLowerCase()} match these filters`} />
        ) : (
          <Empty title={`No ${label.toLowerCase()} yet`}>{children}</Empty>
        ))}
      {rows && rows.length > 0 && (
        <div class="live-log">
          {freshCount > 0 && (
            <div class="live-log-fresh">
              <Button kind="main" onPress={list.showFresh}>
                Show {freshCount} new
              </Button>
            </div>
          )}
          <Log
            label={label}
            columns={columns}
            rows={rows}
            hasMore={list.hasMore}
            hrefOf={hrefOf}
            onEnd={list.loadMore}
            onScroll={(atStart) => {
              isAtStart.current = atStart;
              if (atStart) list.showFresh();
            }}
            onRow={(row) => (focused.current = row)}
          />
        </div>
      )}
    </>
  );
}
