/** Selectable values and their labels. */
export type Choices = readonly (readonly [value: string, label: string, ...more: unknown[]])[];

/**
 * The options of a select. `other` labels a chosen value that is not among them, for example from a
 * link.
 */
export function Options({
  options,
  chosen,
  other,
}: {
  readonly options: Choices;
  readonly chosen: string;
  readonly other?: string | undefined;
}) {
  const isKnown = options.some(([value]) => value === chosen);
  return (
    <>
      {options.map(([value, label]) => (
        <option key={value} value={value} selected={value === chosen}>
          {label}
        </option>
      ))}
      {!isKnown && other !== undefined && (
        <option value={chosen} selected>
          {other}
        </option>
      )}
    </>
  );
}

/** Resources of the API as choices, sorted by name. */
export function byName(
  things: readonly { readonly uid: string; readonly name: string }[],
): Choices {
  return things
    .map(({ uid, name }) => [uid, name] as const)
    .sort(([, one], [, other]) => one.localeCompare(other));
}
