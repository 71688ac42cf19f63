import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import {
  changes,
  type Listing,
  type PageQuery,
  type ReadOptions,
  useList,
} from '../../api/read.js';
import { utcTime } from '../../format/time.js';
import { projectHref, query } from '../../router/location.js';
import { Empty, Loading, Problem } from '../feedback.js';
import { Button, ButtonLink, listPath, Page } from '../layout.js';
import { useShortcuts } from '../shortcuts.js';
import { FilterBar, isAnyFilterSet, isOpenEnded } from './filter-bar.js';
import { isOldestFirst, Log, type LogColumn } from './log.js';

const LIVE_MS = 2_000;

interface Props<Row> {
  /** Such as `Event types`, whose pages are below `/event-types`. */
  readonly title: string;
  readonly label?: string;
  readonly columns: readonly LogColumn<Row>[];
  readonly load: (page: PageQuery, options: ReadOptions) => Listing<Row>;
  readonly hrefOf?: (row: Row) => string;
  /** The key `r` acts on the focused row. */
  readonly rowKey?: { readonly label: string; readonly run: (row: Row) => void } | false;
  readonly children: ComponentChildren;
}

/**
 * A page that lists rows as they appear, with filters.
 *
 * @param props.creates what the user may create, such as `endpoint`
 * @param props.note between the filters and the list
 */
export function ListPage<Row extends { readonly uid: string }>({
  actions,
  creates,
  searchHint,
  filters,
  hasTime = true,
  note,
  ...list
}: Props<Row> & {
  actions?: ComponentChildren;
  creates?: string | false;
  searchHint?: string;
  filters?: ComponentChildren;
  hasTime?: boolean;
  note?: ComponentChildren;
}) {
  const { title, children } = list;
  const creation = projectHref(`${listPath(title)}/new`);
  return (
    <Page
      title={title}
      isFull
      actions={
        <>
          {actions}
          {creates && (
            <ButtonLink kind="main" keys="n" href={creation}>
              {`New ${creates}`}
            </ButtonLink>
          )}
        </>
      }
    >
      <FilterBar {...(searchHint && { searchHint })} hasTime={hasTime}>
        {filters}
      </FilterBar>
      {note}
      {/* After a change, the list starts anew. */}
      <LiveLog<Row> key={changes.value} {...list}>
        {children}
        {creates && (
          <ButtonLink kind="main" href={creation}>
            {`Create ${creates}`}
          </ButtonLink>
        )}
      </LiveLog>
    </Page>
  );
}

/** While the user reads further down, new rows are held back behind a button. */
function LiveLog<Row extends { readonly uid: string }>({
  title,
  label = title,
  columns,
  load,
  hrefOf = ({ uid }) => projectHref(`${listPath(title)}/${uid}`),
  rowKey,
  children,
}: Props<Row>) {
  const isAtStart = useRef(true);
  const focused = useRef<Row | undefined>(undefined);
  useShortcuts(
    rowKey
      ? [
          {
            keys: 'r',
            label: rowKey.label,
            run: () => focused.current && rowKey.run(focused.current),
          },
        ]
      : [],
  );
  const order = isOldestFirst() ? ({ sort: 'ASC' } as const) : {};
  const ordered: typeof load = (page, options) => load({ ...page, ...order }, options);
  // A row that moves to another page would be shown twice, so a list in another order is not polled.
  const isLive =
    isOpenEnded() && !isOldestFirst() && !query.value.has('by') && !query.value.has('search');
  const list = useList(
    `${title} ${query.value.toString()}`,
    ordered,
    isLive ? LIVE_MS : undefined,
    () => !isAtStart.current,
  );
  const { rows, error, freshCount, searchedTo } = list;
  const isFiltered = isAnyFilterSet();
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
      {rows?.length === 0 && (
        <Empty title={`No ${label.toLowerCase()} ${isFiltered ? 'match these filters' : 'yet'}`}>
          {!isFiltered && children}
        </Empty>
      )}
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
