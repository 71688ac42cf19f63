import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useDebounced } from '../../api/index.js';
import { param, query, setQuery } from '../../router/location.js';
import { type Choices, Options } from '../field.js';
import { Button } from '../layout.js';
import { useShortcuts } from '../shortcuts.js';

const TYPING_MS = 300;

/** A query can also only order the rows. */
export function isAnyFilterSet(): boolean {
  return [...query.value.keys()].some((name) => name !== 'sort' && name !== 'by');
}

/**
 * Search, filters and time range are in the query string. `hasTime` is false for rows without a
 * time. Without `searchHint`, there is no search field.
 */
export function FilterBar({
  searchHint,
  hasTime = true,
  children,
}: {
  searchHint?: string;
  hasTime?: boolean;
  children?: ComponentChildren;
}) {
  const field = useRef<HTMLInputElement>(null);
  const search = param('search');
  const [typed, setTyped] = useState(search);
  const before = useRef(search);
  // The field follows the query, which the back button and links change.
  if (before.current !== search) {
    before.current = search;
    if (typed.trim() !== search) setTyped(search);
  }
  useShortcuts(
    searchHint ? [{ keys: '/', label: 'Search', run: () => field.current?.select() }] : [],
  );
  const settled = useDebounced(typed, TYPING_MS);
  // Sets the query only for what was typed, and not for what the back button restored.
  useEffect(() => {
    if (settled === typed) setQuery({ search: settled.trim() }, { replace: true });
  }, [settled]);
  return (
    <form
      class="filter-bar"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        setQuery({ search: typed.trim() });
      }}
    >
      {searchHint && (
        <input
          ref={field}
          class="filter-search"
          type="search"
          value={typed}
          placeholder={searchHint}
          title="Key: /"
          aria-label={searchHint}
          aria-keyshortcuts="/"
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      )}
      {children}
      {hasTime && <FilterSelect name="range" label="Time" options={RANGES} />}
      {query.value.get('range') === 'custom' && (
        <>
          <FilterTime name="from" label="From" />
          <FilterTime name="to" label="To" />
        </>
      )}
      {isAnyFilterSet() && (
        <Button
          kind="quiet"
          onPress={() =>
            setQuery(Object.fromEntries([...query.value.keys()].map((name) => [name, undefined])))
          }
        >
          Clear
        </Button>
      )}
    </form>
  );
}

/** `''` means none. For `other`, see `Options`. */
export function FilterSelect({
  name,
  label,
  options,
  other,
}: {
  name: string;
  label: string;
  options: Choices;
  other?: string;
}) {
  const value = param(name);
  return (
    <select
      aria-label={label}
      value={value}
      class={value ? 'chosen' : ''}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value })}
    >
      <Options options={options} chosen={value} other={other} />
    </select>
  );
}

function FilterTime({ name, label }: { name: string; label: string }) {
  const id = useId();
  return (
    <span class="filter-time">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="datetime-local"
        value={param(name)}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value })}
      />
    </span>
  );
}

/** Hexadecimal digits grouped as in a UUID. */
const ID_START = /^[0-9a-f]{8}(-[0-9a-f-]*)?$/i;

export interface Search {
  readonly query?: string;
  readonly event_type?: string;
}

export function searchOf(text: string): Search {
  const wanted = text.trim();
  if (wanted === '') return {};
  return ID_START.test(wanted) ? { query: wanted.toLowerCase() } : { event_type: wanted };
}

const HOUR_MS = 3_600_000;

/** Values of the query parameter `range`, the first being the default, with label and length. */
export const RANGES = [
  ['', 'Any time', undefined],
  ['15m', 'Last 15 minutes', HOUR_MS / 4],
  ['1h', 'Last hour', HOUR_MS],
  ['6h', 'Last 6 hours', 6 * HOUR_MS],
  ['24h', 'Last 24 hours', 24 * HOUR_MS],
  ['7d', 'Last 7 days', 7 * 24 * HOUR_MS],
  ['custom', 'Custom range', undefined],
] as const;

/** For the API. Unlimited ends are omitted. */
export function shownRange(nowMs = Date.now()): { startDate?: string; endDate?: string } {
  const asked = param('range');
  if (asked === 'custom') {
    return {
      ...timeOf('startDate', query.value.get('from')),
      ...timeOf('endDate', query.value.get('to')),
    };
  }
  const lengthMs = RANGES.find(([value]) => value === asked)?.[2];
  return lengthMs === undefined ? {} : { startDate: new Date(nowMs - lengthMs).toISOString() };
}

/** For a bulk operation. Ends now, to exclude later rows. */
export function closedRange(): { startDate: string; endDate: string } {
  return {
    startDate: new Date(0).toISOString(),
    endDate: new Date().toISOString(),
    ...shownRange(),
  };
}

function timeOf(name: string, text: string | null): Record<string, string> {
  const date = new Date(text ?? '');
  return Number.isNaN(date.getTime()) ? {} : { [name]: date.toISOString() };
}

export function isOpenEnded(): boolean {
  return !(query.value.get('range') === 'custom' && query.value.get('to'));
}

/** Part of a sentence, such as `last hour` or `any time`. */
export function rangeWords(): string {
  const asked = param('range');
  const label = RANGES.find(([value]) => value === asked)?.[1] ?? RANGES[0][1];
  return label.toLowerCase();
}
