import type { Page } from '@gateway/client';
import { signal } from '@preact/signals';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { projectId } from '../router/location.js';

export interface Resource<Data> {
  /** Kept during the next read. */
  readonly data: Data | undefined;
  readonly error: Error | undefined;
  readonly isLoading: boolean;
  readonly refresh: () => void;
}

/** For the API. The signal ends the read when its page is left. */
export interface ReadOptions {
  readonly signal: AbortSignal;
}

/** Counts what the user changed. After each change, everything shown is read again. */
export const changes = signal(0);

/** The back button shows cached data at once, while it is read again. */
const shownBefore = new Map<string, unknown>();
const KEPT = 60;

/**
 * @param name identifies, with the project, everything that `load` depends on; a new name triggers
 *   another read, undefined reads nothing
 * @param everyMs the poll interval while the page is visible
 */
export function useResource<Data>(
  name: string | undefined,
  load: (options: ReadOptions) => Promise<Data>,
  everyMs?: number,
): Resource<Data> {
  const key = name === undefined ? undefined : `${projectId.value} ${name}`;
  const [state, setState] = useState<{ key?: string | undefined; data?: Data; error?: Error }>({});
  const [round, setRound] = useState(0);
  const refresh = useCallback(() => setRound((it) => it + 1), []);

  const read = async (signal: AbortSignal): Promise<void> => {
    try {
      const data = await load({ signal });
      if (signal.aborted) return;
      remember(key!, data);
      setState({ key, data });
    } catch (error) {
      if (signal.aborted) return;
      setState((before) => ({ ...(before.key === key && before), key, error: error as Error }));
    }
  };
  usePolling(read, everyMs, [key, round, changes.value], key !== undefined);

  const isCurrent = state.key === key;
  const data =
    (isCurrent ? state.data : undefined) ??
    (key === undefined ? undefined : (shownBefore.get(key) as Data | undefined));
  const error = isCurrent ? state.error : undefined;
  return { data, error, isLoading: data === undefined && error === undefined, refresh };
}

function remember(key: string, data: unknown): void {
  shownBefore.delete(key);
  shownBefore.set(key, data);
  const oldest = shownBefore.keys().next();
  if (shownBefore.size > KEPT && !oldest.done) shownBefore.delete(oldest.value);
}

/** Another user may sign in next. */
export function forgetResources(): void {
  shownBefore.clear();
}

export interface List<Row> {
  /** Newest first. Undefined until the first page is read. */
  readonly rows: readonly Row[] | undefined;
  readonly hasMore: boolean;
  /** Set if a search waits for `loadMore`. */
  readonly searchedTo: string | undefined;
  readonly error: Error | undefined;
  /** New rows held back until `showFresh`. */
  readonly freshCount: number;
  readonly loadMore: () => void;
  readonly showFresh: () => void;
  readonly refresh: () => void;
}

interface ListState<Row> {
  readonly key: string;
  readonly rows: readonly Row[] | undefined;
  readonly cursor: string | null;
  readonly searchedTo?: string | undefined;
  readonly error: Error | undefined;
  readonly held: Page<Row> | undefined;
}

export interface PageQuery {
  readonly perPage: number;
  readonly next_page_cursor?: string;
  readonly sort?: 'ASC';
}

export type Listing<Row> = Promise<Page<Row>> | { page(): Promise<Page<Row>> };

async function pageOf<Row>(listing: Listing<Row>): Promise<Page<Row>> {
  return 'page' in listing ? listing.page() : listing;
}

/** A small first page arrives quickly. Further pages are larger. */
const FIRST: PageQuery = { perPage: 50 };
const FURTHER = 200;

/**
 * Polls the first page.
 *
 * @param name identifies, with the project, the list and its filters; a new name starts over
 * @param everyMs the poll interval while the page is visible
 * @param isHeld whether to hold back new rows until `showFresh`, because the user is
 *   reading further down
 */
export function useList<Row extends { readonly uid: string }>(
  name: string,
  load: (page: PageQuery, options: ReadOptions) => Listing<Row>,
  everyMs?: number,
  isHeld = () => false,
): List<Row> {
  const key = `${projectId.value} ${name}`;
  const empty: ListState<Row> = {
    key,
    rows: undefined,
    cursor: null,
    error: undefined,
    held: undefined,
  };
  const [stored, setState] = useState(empty);
  const [round, setRound] = useState(0);
  const latest = useRef({ load, isHeld });
  latest.current = { load, isHeld };
  const isLoadingMore = useRef(false);
  const state = stored.key === key ? stored : empty;
  /** Does nothing if the list is no longer shown. */
  const update = useCallback(
    (change: (before: ListState<Row>) => ListState<Row>) =>
      setState((before) => change(before.key === key ? before : { ...empty, key })),
    [key],
  );

  const read = async (signal: AbortSignal): Promise<void> => {
    try {
      const page = await pageOf(load(FIRST, { signal }));
      if (!signal.aborted) update((before) => withFirstPage(before, page, latest.current.isHeld()));
    } catch (error) {
      if (!signal.aborted) update((before) => ({ ...before, error: error as Error }));
    }
  };
  usePolling(read, everyMs, [key, round, changes.value]);

  const loadMore = () => {
    const { cursor } = state;
    if (isLoadingMore.current || cursor === null) return;
    isLoadingMore.current = true;
    const query = { perPage: FURTHER, next_page_cursor: cursor };
    pageOf(latest.current.load(query, { signal: AbortSignal.timeout(30_000) }))
      .then(({ content, pagination }) =>
        update((before) =>
          before.cursor === cursor
            ? {
                ...before,
                error: undefined,
                rows: [...(before.rows ?? []), ...content],
                cursor: pagination.next_page_cursor,
                searchedTo: pagination.searched_to,
              }
            : before,
        ),
      )
      .catch((error: unknown) => update((before) => ({ ...before, error: error as Error })))
      .finally(() => (isLoadingMore.current = false));
  };

  return {
    rows: state.rows,
    hasMore: state.cursor !== null && state.searchedTo === undefined,
    searchedTo: state.searchedTo,
    error: state.error,
    freshCount: state.held ? freshOf(state.rows ?? [], state.held).length : 0,
    loadMore,
    showFresh: useCallback(
      () => update((before) => (before.held ? withFirstPage(before, before.held, false) : before)),
      [update],
    ),
    refresh: useCallback(() => setRound((it) => it + 1), []),
  };
}

function freshOf<Row extends { readonly uid: string }>(
  rows: readonly Row[],
  { content }: Page<Row>,
): readonly Row[] {
  const known = new Set(rows.map(({ uid }) => uid));
  return content.filter(({ uid }) => !known.has(uid));
}

/** While new rows are held back, only updates known rows. */
export function withFirstPage<Row extends { readonly uid: string }>(
  state: ListState<Row>,
  page: Page<Row>,
  isHeld: boolean,
): ListState<Row> {
  const { rows } = state;
  if (rows && isHeld && freshOf(rows, page).length > 0) {
    const newest = new Map(page.content.map((row) => [row.uid, row]));
    return {
      ...state,
      error: undefined,
      rows: rows.map((row) => newest.get(row.uid) ?? row),
      held: page,
    };
  }
  const last = page.content.at(-1)?.uid;
  const end = rows?.findIndex(({ uid }) => uid === last) ?? -1;
  // A first page without a next one is the whole list, so removed rows are dropped.
  if (!rows || end < 0 || page.pagination.next_page_cursor === null)
    return {
      ...state,
      error: undefined,
      rows: page.content,
      cursor: page.pagination.next_page_cursor,
      searchedTo: page.pagination.searched_to,
      held: undefined,
    };
  return {
    ...state,
    error: undefined,
    rows: [...page.content, ...rows.slice(end + 1)],
    held: undefined,
  };
}

/**
 * Reads at once, when a dependency changes, and periodically while the page is visible. An aborted
 * `read` must change nothing.
 *
 * @param everyMs the pause between the end of a read and the next; undefined reads once
 */
function usePolling(
  read: (signal: AbortSignal) => Promise<void>,
  everyMs: number | undefined,
  dependencies: readonly unknown[],
  isWanted = true,
): void {
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    if (!isWanted) return undefined;
    const closing = new AbortController();
    const { signal } = closing;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const turn = async (): Promise<void> => {
      await latest.current(signal);
      if (!signal.aborted && everyMs !== undefined) timer = setTimeout(next, everyMs);
    };
    const next = () => {
      if (document.hidden)
        document.addEventListener('visibilitychange', () => void turn(), { once: true, signal });
      else void turn();
    };
    void turn();
    return () => {
      clearTimeout(timer);
      closing.abort();
    };
  }, [...dependencies, everyMs, isWanted]);
}

export function useDebounced<Value>(value: Value, ms: number): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
