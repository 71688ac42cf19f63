import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useDebounced } from '../../api/index.js';
import { param, query, setQuery } from '../../router/location.js';
import { Options, type Choices } from '../field.js';
import { Button } from '../layout.js';
import { useShortcuts } from '../shortcuts.js';
import { RANGES } from './time-range.js';

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
