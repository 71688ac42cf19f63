import { query, setQuery } from '../../router/location.js';

/** Links that switch the content of a page; the query parameter `name` holds the shown tab. */
export function Tabs({
  name,
  label,
  tabs,
}: {
  readonly name: string;
  readonly label: string;
  /** The first tab needs no query parameter. */
  readonly tabs: readonly (readonly [value: string, label: string])[];
}) {
  const shown = tabValue(name, tabs);
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([value, text], index) => (
        <button
          key={value}
          type="button"
          aria-current={value === shown ? 'true' : undefined}
          onClick={() => setQuery({ [name]: index === 0 ? undefined : value })}
        >
          {text}
        </button>
      ))}
    </nav>
  );
}

export function tabValue(
  name: string,
  tabs: readonly (readonly [value: string, label: string])[],
): string {
  const asked = query.value.get(name);
  return tabs.find(([value]) => value === asked)?.[0] ?? tabs[0]?.[0] ?? '';
}
