/**
 * The line, from 1, on which a member of a JSON object stands: that of its name.
 *
 * @param text the text of an object, which `JSON.parse` has accepted
 * @param key the names on the way to the member, joined by dots: `server.http.port`
 * @returns undefined when there is no such member; of a repeated one the last, as `JSON.parse` has it
 */
export function jsonLine(text: string, key: string): number | undefined {
  let found: number | undefined;
  /** The name that each open object or array hangs on. */
  const path: string[] = [];
  let name = '';
  for (const token of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g)) {
    const [it, isName] = token;
    if (isName !== undefined) {
      name = JSON.parse(it.slice(0, -isName.length)) as string;
      if ([...path.slice(1), name].join('.') === key) found = text.slice(0, token.index).split('\n').length;
    } else if (it === '{' || it === '[') {
      path.push(name);
      name = '';
    } else if (it === '}' || it === ']') {
      path.pop();
    }
  }
  return found;
}
