/** Drops undefined, null and `''`, which a request leaves out. */
export function given<Values extends object>(
  values: Values,
): { [Name in keyof Values]?: Exclude<Values[Name], undefined | null | ''> } {
  const entries = Object.entries(values).filter(
    ([, value]) => value !== undefined && value !== null && value !== '',
  );
  return Object.fromEntries(entries) as ReturnType<typeof given<Values>>;
}
