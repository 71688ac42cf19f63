/** What can be chosen, with words for it. */
export type Choices = readonly (readonly [value: string, label: string, ...more: unknown[]])[];

/** The options of a select. A chosen value that is not among them, as a link may ask for, is called `other`. */
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

/** Things of the API as choices, by name. */
export function byName(things: readonly { readonly uid: string; readonly name: string }[]): Choices {
  return things.map(({ uid, name }) => [uid, name] as const).sort(([, one], [, other]) => one.localeCompare(other));
}
