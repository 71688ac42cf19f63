import { compileFunction } from 'node:vm';
import { lineOf, onLine, SOURCE_NAME } from './error-line.js';
import { makeCompartment } from './guest-globals.js';
import { MAX_TEXT_CHARS } from '../protocol/limits.js';
import { refuse, type Refusal } from '../protocol/refusals.js';
import { messageOf } from './shown.js';

/** Runs the text from its top and returns what it calls `transform`. */
export type Instantiate = () => unknown;

/**
 * Compiles the text of a function, without running any of it.
 *
 * The text becomes the body of a function that returns `transform`, and that body runs anew for every call. So every variable at the
 * top of the text is fresh in every call, and because the globals are frozen, a call leaves nothing behind for the next one. That
 * costs 0.02 µs for a text that only declares functions, where a compartment per call would cost 60 to 80 µs.
 */
export function compile(text: string, console: object): Instantiate | Refusal {
  if (text.length > MAX_TEXT_CHARS) {
    return refuse('not_compiled', `The text has ${text.length} characters, and ${MAX_TEXT_CHARS} are allowed.`, 'Shorten it.');
  }
  const malformed = findSyntaxError(text);
  if (malformed) return malformed;
  const body = `(function () {${text}\n;return typeof transform === 'undefined' ? undefined : transform;\n})\n//# sourceURL=${SOURCE_NAME}`;
  try {
    return makeCompartment(console).evaluate(body) as Instantiate;
  } catch (error) {
    return refuseText(error);
  }
}

/**
 * Whether calls of this text may leave callbacks of promises behind. There is no Promise among the globals and no way to make code
 * at run time, so it takes the word `async`, which cannot be written with escapes.
 */
export function mayMakePromises(text: string): boolean {
  return text.includes('async');
}

/**
 * V8 tells the line of a syntax error only where it compiles a named source, and only a text that is a whole function body by
 * itself may be put between our braces: `}); more(); (function () {` is refused here.
 */
function findSyntaxError(text: string): Refusal | undefined {
  try {
    compileFunction(`'use strict';${text}`, [], { filename: SOURCE_NAME });
    return undefined;
  } catch (error) {
    const stack = (error as { stack?: unknown }).stack;
    const line = typeof stack === 'string' ? new RegExp(`^${SOURCE_NAME}:(\\d+)`).exec(stack)?.[1] : undefined;
    const message = messageOf(error);
    const happened = `The text does not compile: ${message}${onLine(line)}.`;
    return /\b(import|export)\b/.test(message)
      ? refuse('not_compiled', happened, 'A transform is no module: write the function alone, without import and export.')
      : refuse('not_compiled', happened);
  }
}

/** What SES refuses by the look of the text, comments and strings included, and how to write it so that SES takes it. */
const REJECTED: Record<string, { what: string; fix: string }> = {
  SES_IMPORT_REJECTED: {
    what: 'import(',
    fix: 'Nothing can be imported. In a string or a comment, put something between the word and the bracket.',
  },
  SES_EVAL_REJECTED: {
    what: 'eval(',
    fix: 'No code can be made at run time. In a string or a comment, put something between the word and the bracket.',
  },
  SES_HTML_COMMENT_REJECTED: { what: '<!-- or -->', fix: "Write it in two parts: '<' + '!--', or '--' + '>'." },
};

// https://github.com/endojs/endo/tree/master/packages/ses/error-codes
function refuseText(error: unknown): Refusal {
  const message = messageOf(error);
  const [, line, code = ''] = /:(\d+)\. \((SES_\w+)\)/.exec(message) ?? [];
  const rejected = REJECTED[code];
  if (!rejected) return refuse('not_compiled', `The text does not compile: ${message}${onLine(lineOf(error))}.`);
  return refuse(
    'not_compiled',
    `The text has ${rejected.what}${onLine(line)}, which is not allowed even in strings and comments.`,
    rejected.fix,
  );
}
