/** A member of an object in a JSON text. */
export interface JsonMember {
  /** The names on the way to it, joined, with the indexes of lists. */
  readonly path: string;
  /** The line of its name, from 1. */
  readonly line: number;
}

/**
 * The members of all objects of a text that `JSON.parse` has accepted, in their order. Repeated ones are among them.
 *
 * @param joint what stands between two names of a path
 */
export function jsonMembers(text: string, joint = '.'): JsonMember[] {
  const members: JsonMember[] = [];
  const open: { readonly prefix: string; readonly isList: boolean; index: number }[] = [];
  /** The path of the next value. */
  let path = '';
  let line = 1;
  let counted = 0;
  for (const { 0: token, 1: isName, index } of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\],]/g)) {
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

/** Members with the same path, of which `JSON.parse` keeps the last: each path with its lines, and nothing of what is within them. */
export function repeatedMembers(text: string, joint = '.'): { readonly path: string; readonly lines: readonly number[] }[] {
  const linesOf = new Map<string, number[]>();
  for (const { path, line } of jsonMembers(text, joint)) linesOf.set(path, [...(linesOf.get(path) ?? []), line]);
  const repeated = [...linesOf].filter(([, lines]) => lines.length > 1).map(([path, lines]) => ({ path, lines }));
  return repeated.filter(({ path }) => !repeated.some((other) => path.startsWith(other.path + joint)));
}
