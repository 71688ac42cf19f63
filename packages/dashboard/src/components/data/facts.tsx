import type { ComponentChildren } from 'preact';

/** Names with values; omits rows with a value of null or undefined. */
export function Facts({
  rows,
}: {
  readonly rows: readonly (readonly [name: string, value: ComponentChildren])[];
}) {
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
