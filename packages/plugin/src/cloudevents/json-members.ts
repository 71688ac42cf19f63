const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:,]|[^\s"[\]{}:,]+/g;

/**
 * The members of an object, or the elements of an array, by name or index, each as it is written:
 * parsing a number loses digits. Of a repeated name, the last one counts, as for `JSON.parse`.
 *
 * @param text valid JSON of an object or an array
 */
export function rawMembers(text: string): Map<string, string> {
  const members = new Map<string, string>();
  const isArray = /^\s*\[/.test(text);
  let depth = 0;
  let name: string | undefined;
  let from = -1;
  let to = -1;
  const close = () => {
    if (from >= 0) members.set(name ?? String(members.size), text.slice(from, to));
    name = undefined;
    from = -1;
  };
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const isEnd = token === '}' || token === ']';
    if (depth === 1 && (token === ',' || isEnd)) close();
    else if (depth === 1 && token === ':') continue;
    else if (depth === 1 && !isArray && name === undefined) name = JSON.parse(token) as string;
    else if (depth >= 1) {
      if (from < 0) from = index;
      to = index + token.length;
    }
    if (isEnd) depth--;
    else if (token === '{' || token === '[') depth++;
  }
  return members;
}
