import { compileFunction } from 'node:vm';
import { Type } from '@sinclair/typebox';
import { assertValid, nullable } from '../../http/schema.js';

export const BodyFunction = nullable(Type.String({ maxLength: 50_000, description: 'JavaScript with a function transform(payload).' }));

const FILENAME = 'transform.js';

/** Compiles a transform function without running it. What only running shows, agents quarantine with a reason. */
export function validateFunction(text: string | null | undefined): void {
  if (!text) return;
  const field = 'body_function';
  try {
    compileFunction(`'use strict';${text}`, [], { filename: FILENAME });
  } catch (error) {
    const line = new RegExp(`^${FILENAME}:(\\d+)`).exec((error as Error).stack ?? '')?.[1];
    const where = line === undefined ? '' : ` on line ${line}`;
    assertValid([{ field, sentence: `does not compile: ${(error as Error).message}${where}` }]);
  }
  if (!/\btransform\b/.test(text))
    assertValid([{ field, sentence: 'has no function named transform; write function transform(payload) { ... }' }]);
}
