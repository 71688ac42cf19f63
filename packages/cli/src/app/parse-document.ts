import { readFileSync } from 'node:fs';
import { fileReason, GatewayError } from '@gateway/core/errors';
import { repeatedMembers } from '@gateway/core/json';
import { maskUrls } from '@gateway/core/logging';
import type { ParsedDocument } from '@gateway/core/openapi';

/**
 * Reads a YAML or JSON file and, if it refers to other files, puts what it refers to into the
 * document. Fetches no URL.
 * @throws GatewayError `openapi_broken` if a file cannot be read or parsed, or if a JSON file
 *   repeats a key
 */
export async function readDocument(path: string): Promise<ParsedDocument> {
  const broken = (reason: string, { fix, cause }: { fix?: string; cause?: unknown } = {}) =>
    new GatewayError(
      'openapi_broken',
      { file: maskUrls(path), reason, ...(fix ? { fix } : {}) },
      { cause },
    );
  if (/^https?:/i.test(path))
    throw broken('only files are read', { fix: 'download it, and name the file' });
  const { bundle, parse } = await import('@readme/openapi-parser');
  let root: unknown;
  try {
    root = await parse(path);
    // Without a resolver for URLs, which its type does not allow, the parser refuses them.
    if (refersToFile(root)) root = await bundle(path, { resolve: { http: false as never } });
  } catch (cause) {
    throw broken(reasonOf(cause as Error, path), { cause });
  }
  // Only needed for JSON: the YAML parser itself rejects repeated keys.
  const [repeated] = path.endsWith('.json')
    ? repeatedMembers(readFileSync(path, 'utf8'), '\n')
    : [];
  if (!repeated) return { name: path, root };
  throw broken(
    `it names ${repeated.path.replaceAll('\n', '.')} twice, in the lines ${repeated.lines.join(' and ')}`,
  );
}

function refersToFile(root: unknown): boolean {
  const seen = new Set<unknown>([root]);
  for (const value of seen) {
    if (typeof value !== 'object' || value === null) continue;
    const { $ref: ref } = value as { $ref?: unknown };
    if (typeof ref === 'string' && !/^(#|https?:)/i.test(ref)) return true;
    for (const part of Object.values(value)) seen.add(part);
  }
  return false;
}

/** Converts the parser's message to one line, without the excerpt of the file. */
function reasonOf(error: Error & { source?: string; ioErrorCode?: string }, path: string): string {
  const { message, source = path } = error;
  const [first = ''] = message.replaceAll(source, 'it').split('\n');
  const code = error.ioErrorCode ?? /\b(ENOENT|EISDIR|EACCES)\b/.exec(message)?.[1];
  const where = source.endsWith(path) || message.includes(path) ? 'it' : source;
  if (code !== undefined) return `${where} cannot be read: ${fileReason({ code, message })}`;
  if (first.endsWith('is not a valid JSON Schema'))
    return 'it is not an OpenAPI document: it holds no object';
  if (/^(Unable to resolve|Missing) \$ref/.test(first))
    return maskUrls(first.replace(/^\w/, (letter) => letter.toLowerCase()).replace(/\.$/, ''));
  const words = first.replace(/^Error parsing it: /, '').replace(/:$/, '');
  return `${where} is neither YAML nor JSON: ${words.replace(/\((\d+):(\d+)\)/, '(line $1, column $2)')}`;
}
