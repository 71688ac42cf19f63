interface JsonMember {
  /** Names and list indexes, joined. */
  readonly path: string;
  readonly line: number;
}

/**
 * In the order of the text, which must be valid JSON, including repeated ones.
 * @param joint the separator between the parts of a path
 */
export function jsonMembers(text: string, joint = '.'): JsonMember[] {
  const members: JsonMember[] = [];
  const open: { readonly prefix: string; readonly isList: boolean; index: number }[] = [];
  let path = '';
  let line = 1;
  let counted = 0;
  for (const { 0: token, 1: isName, index } of text.matchAll(
    /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\],]/g,
  )) {
    const within = open.at(-1);
    if (isName !== undefined) {
      path = within!.prefix + (JSON.parse(token.slice(0, -isName.length)) as string);
      line += text.slice(counted, index).split('\n').length - 1;
      counted = index;
      members.push({ path, line });
    } else if (token === '{' || token === '[') {
      const prefix = open.length === 0 ? '' : path + joint;
      open.push({ prefix, isList: token === '[', index: 0 });
      if (token === '[') path = `${prefix}0`;
    } else if (token === '}' || token === ']') {
      open.pop();
    } else if (within?.isList) {
      path = within.prefix + ++within.index;
    }
  }
  return members;
}

/**
 * `JSON.parse` keeps only the last of repeated properties. Omits those nested in another repeated
 * property.
 */
export function repeatedMembers(
  text: string,
  joint = '.',
): { readonly path: string; readonly lines: readonly number[] }[] {
  const linesOf = new Map<string, number[]>();
  for (const { path, line } of jsonMembers(text, joint))
    linesOf.set(path, [...(linesOf.get(path) ?? []), line]);
  const repeated = [...linesOf]
    .filter(([, lines]) => lines.length > 1)
    .map(([path, lines]) => ({ path, lines }));
  return repeated.filter(
    ({ path }) => !repeated.some((other) => path.startsWith(other.path + joint)),
  );
}
