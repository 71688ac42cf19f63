import { readFileSync } from 'node:fs';
import { fileReason, GatewayError } from '@gateway/core/errors';
import { repeatedMembers } from '@gateway/core/json';

/**
 * YAML or JSON. Throws `openapi_broken` if it cannot be read or parsed, or if a JSON file repeats a
 * key.
 */
export async function parseFile(path: string, name: string): Promise<unknown> {
  const { parse } = await import('@readme/openapi-parser');
  let document: unknown;
  try {
    document = await parse(path);
  } catch (error) {
    const { message, ioErrorCode } = error as Error & { ioErrorCode?: string };
    const code = ioErrorCode ?? /\b(ENOENT|EISDIR|EACCES)\b/.exec(message)?.[1];
    const reason =
      code === undefined
        ? syntaxError(message, path)
        : `it cannot be read: ${fileReason({ code, message })}`;
    throw new GatewayError('openapi_broken', { file: name, reason }, { cause: error });
  }
  // Only needed for JSON: the YAML parser itself rejects repeated keys.
  const [repeated] = path.endsWith('.json')
    ? repeatedMembers(readFileSync(path, 'utf8'), '\n')
    : [];
  if (!repeated) return document;
  const reason = `it names ${repeated.path.replaceAll('\n', '.')} twice, in the lines ${repeated.lines.join(' and ')}`;
  throw new GatewayError('openapi_broken', { file: name, reason });
}

/** One line, without the excerpt of the file. */
function syntaxError(message: string, path: string): string {
  const [first = ''] = message.replaceAll(path, 'it').split('\n');
  if (first.endsWith('is not a valid JSON Schema'))
    return 'it is not an OpenAPI document: it holds no object';
  const words = first.replace(/^Error parsing it: /, '').replace(/:$/, '');
  return `it is neither YAML nor JSON: ${words.replace(/\((\d+):(\d+)\)/, '(line $1, column $2)')}`;
}
