import { compileFunction } from 'node:vm';
import type { StoredRejection } from '@gateway/ingest/requests/preview';
import { int, invalid, nullable, object, string, Type, type TUnsafe } from '../api/vocabulary.js';

const FUNCTION_CHARS_MAX = 50_000;
export const FunctionText = Type.String({
  maxLength: FUNCTION_CHARS_MAX,
  description: 'JavaScript with a function transform(payload).',
});

const FILENAME = 'transform.js';

/**
 * Compiles without running. Blank text means no function. Throws `invalid_request`.
 * @param field the field that contains the function
 */
export function validateFunction(text: string | null | undefined, field: string): void {
  if (!text?.trim()) return;
  try {
    compileFunction(`'use strict';${text}`, [], { filename: FILENAME });
  } catch (error) {
    const line = new RegExp(`^${FILENAME}:(\\d+)`).exec((error as Error).stack ?? '')?.[1];
    const where = line === undefined ? '' : ` on line ${line}`;
    throw invalid(field, `does not compile: ${(error as Error).message}${where}`);
  }
  if (!/\btransform\b/.test(text))
    throw invalid(
      field,
      'has no function named transform; write function transform(payload) { ... }',
    );
}

/** @param description the meaning of a refusal; null if there is none */
export function refusal(description: string): TUnsafe<object | null> {
  const fields = {
    code: string('Reason code, listed in docs/reference/errors.md.'),
    reason: string(),
    line: nullable(int('Line of the function, if known.')),
  };
  return nullable(object(fields), description);
}

export function refusalView(given: StoredRejection | null): unknown {
  if (!given) return null;
  const line = /\bon line (\d+)/.exec(given.reason)?.[1];
  return { code: given.code, reason: given.reason, line: line === undefined ? null : Number(line) };
}
