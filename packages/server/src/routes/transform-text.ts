import { compileFunction } from 'node:vm';

const NAME = 'transform.js';

/**
 * What is wrong with the text of a transform function as far as reading tells; nothing of it runs. Agents confine and run it, and quarantine with
 * a reason what only running shows.
 */
export function transformProblem(text: string): string | undefined {
  try {
    compileFunction(`'use strict';${text}`, [], { filename: NAME });
  } catch (error) {
    const line = new RegExp(`^${NAME}:(\\d+)`).exec((error as Error).stack ?? '')?.[1];
    return `does not compile: ${(error as Error).message}${line === undefined ? '' : ` on line ${line}`}`;
  }
  return /\btransform\b/.test(text) ? undefined : 'has no function named transform; write function transform(payload) { ... }';
}
