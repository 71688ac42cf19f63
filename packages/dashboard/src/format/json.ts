/** JSON text with two spaces a level; text that is not JSON stays as it is. Numbers keep their digits: the text is not made anew from values. */
export function pretty(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  return tokens
    .map((token, index) => {
      const next = tokens[index + 1];
      if (token === '{' || token === '[') {
        if (next === '}' || next === ']') return token;
        depth++;
        return token + line();
      }
      if (token === '}' || token === ']') {
        const before = tokens[index - 1];
        if (before === '{' || before === '[') return token;
        depth--;
        return line() + token;
      }
      if (token === ',') return token + line();
      return token === ':' ? ': ' : token;
    })
    .join('');
}

/** Headers as lines: `content-type: application/json`. */
export function headerLines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}
