import { compileFunction } from 'node:vm';
import type { Node, parse } from 'acorn';
import { lineOf, messageOf, onLine, SOURCE_NAME } from './describe.js';
import { makeCompartment } from './guest-globals.js';
import { MAX_TEXT_CHARS } from '../protocol/protocol.js';
import { refuse, type Refusal } from '../protocol/result.js';

/** Runs the top level of the text and returns its `transform`. */
export type Instantiate = () => unknown;

export interface Language {
  console: object;
  /** Loaded before `lockdown()`. */
  parse: typeof parse;
}

/**
 * A newer edition of ECMAScript may have syntax that reaches objects which `lockdown()` does not
 * freeze, as `using` reaches `SuppressedError`.
 */
const EDITION = 2025;

/**
 * Compiles without running.
 *
 * The text becomes the body of a function that runs for every call. Its variables are therefore
 * fresh and, because globals are frozen, a call leaves no state. This costs 0.02 µs per call, as
 * opposed to 60 to 80 µs for a compartment per call.
 */
export function compile(text: string, language: Language): Instantiate | Refusal {
  if (text.length > MAX_TEXT_CHARS) {
    return refuse(
      'not_compiled',
      `The text has ${text.length} characters, and ${MAX_TEXT_CHARS} are allowed.`,
      'Shorten it.',
    );
  }
  const malformed = findSyntaxError(text, language.parse);
  if (malformed) return malformed;
  const body = `(function () {${text}\n;return typeof transform === 'undefined' ? undefined : transform;\n})\n//# sourceURL=${SOURCE_NAME}`;
  try {
    return makeCompartment(language.console).evaluate(body) as Instantiate;
  } catch (error) {
    return refuseText(error);
  }
}

/**
 * A function needs an unescaped `async` for promises, because the `Promise` global and code
 * generation are removed.
 */
export function mayMakePromises(text: string): boolean {
  return text.includes('async');
}

/**
 * Checks the syntax with V8, whose messages are better, and with the parser, which knows no syntax
 * beyond `EDITION`. Also refuses text that closes its body: `}); more(); (function () {`.
 */
function findSyntaxError(text: string, parser: typeof parse): Refusal | undefined {
  try {
    compileFunction(`'use strict';${text}`, [], { filename: SOURCE_NAME });
    const line = lineOfImport(text, parser);
    return line === undefined ? undefined : refuseRejected('SES_IMPORT_REJECTED', line);
  } catch (error) {
    const { stack, loc } = error as { stack?: unknown; loc?: { line: number } };
    const line =
      loc?.line ??
      (typeof stack === 'string'
        ? new RegExp(`^${SOURCE_NAME}:(\\d+)`).exec(stack)?.[1]
        : undefined);
    const message = messageOf(error).replace(/ \(\d+:\d+\)$/, '');
    const happened = `The text does not compile: ${message}${onLine(line)}.`;
    return /\b(import|export)\b|'(source|defer)'$/.test(message)
      ? refuse(
          'not_compiled',
          happened,
          'A transform is not a module: write only the function, without import and export.',
        )
      : refuse('not_compiled', happened);
  }
}

/** Ignores properties named `import`. Throws on syntax that the parser does not know. */
function lineOfImport(text: string, parser: typeof parse): number | undefined {
  const body = `(function () {'use strict';${text}\n})`;
  const imports = new Set<number>();
  const tree = parser(body, {
    ecmaVersion: EDITION,
    onToken: ({ type, start }) => {
      if (type.keyword === 'import') imports.add(start);
    },
  });
  if (imports.size > 0)
    forEachNode(tree, ({ type, start }) => type === 'Identifier' && imports.delete(start));
  const [first] = imports;
  return first === undefined
    ? undefined
    : body.slice(0, first).split(/\r\n|[\n\r\u2028\u2029]/).length;
}

function forEachNode(node: Node, visit: (node: Node) => void): void {
  visit(node);
  for (const member of Object.values(node).flat() as unknown[])
    if (typeof (member as Node | null)?.type === 'string') forEachNode(member as Node, visit);
}

/** SES rejects these anywhere, even in comments and strings. */
const REJECTED: Record<string, { what: string; fix: string }> = {
  SES_IMPORT_REJECTED: {
    what: 'import(',
    fix: 'Nothing can be imported. In a string or a comment, put something between the word and the bracket.',
  },
  SES_EVAL_REJECTED: {
    what: 'eval(',
    fix: 'Code cannot be generated at run time. In a string or a comment, put something between the word and the bracket.',
  },
  SES_HTML_COMMENT_REJECTED: {
    what: '<!-- or -->',
    fix: "Write it in two parts: '<' + '!--', or '--' + '>'.",
  },
};

// SES error codes: https://github.com/endojs/endo/tree/master/packages/ses/error-codes
function refuseText(error: unknown): Refusal {
  const message = messageOf(error);
  const [, line, code = ''] = /:(\d+)\. \((SES_\w+)\)/.exec(message) ?? [];
  return REJECTED[code]
    ? refuseRejected(code, line)
    : refuse('not_compiled', `The text does not compile: ${message}${onLine(lineOf(error))}.`);
}

function refuseRejected(code: string, line: number | string | undefined): Refusal {
  const rejected = REJECTED[code]!;
  return refuse(
    'not_compiled',
    `The text has ${rejected.what}${onLine(line)}, which is not allowed even in strings and comments.`,
    rejected.fix,
  );
}

/** The compiler's cache occupies heap that calls may need. */
const MAX_FUNCTIONS = 64;
const MAX_CHARS = 2 * 1024 * 1024;

/** With an LRU cache. */
export function makeCompiler(
  language: Language,
): (key: string, text: string) => Instantiate | Refusal {
  const kept = new Map<string, { text: string; result: Instantiate | Refusal }>();
  let chars = 0;
  const remove = (key: string): void => {
    chars -= kept.get(key)?.text.length ?? 0;
    kept.delete(key);
  };
  return (key, text) => {
    const known = kept.get(key);
    const entry = known?.text === text ? known : { text, result: compile(text, language) };
    remove(key);
    kept.set(key, entry);
    chars += text.length;
    for (const oldest of kept.keys()) {
      if (oldest === key || (kept.size <= MAX_FUNCTIONS && chars <= MAX_CHARS)) break;
      remove(oldest);
    }
    return entry.result;
  };
}
