import { compileFilter, FilterBudget, type Filter } from './filter.js';

/** As a person types it. */
export interface EventSearch {
  /** Each must occur in the event's data, type, id, key, owner or position. */
  readonly words: readonly string[];
  /**
   * Occur in the data of every match, unless it has Unicode escapes or, for digits, numbers with
   * exponents. They exclude most events before their data is parsed.
   */
  readonly texts: readonly string[];
  /** Undefined if there are only words. */
  readonly matches?: (data: string, headers: string) => boolean;
}

const EXAMPLE = 'such as data.order.id = 42 and headers.x-shop = "acme"';
const TOKEN = /"(?:[^"\\]|\\.)*"|[!<>]=|[=<>]|[^\s=!<>"]+|\S/g;
const PATH = /^(data|headers)\.(.+)$/;
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const LITERALS = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
]);
const OPERATORS: Readonly<Record<string, (values: readonly unknown[]) => unknown>> = {
  '=': (values) => ({ $in: values }),
  '!=': (values) => ({ $nin: values }),
  '>': ([value]) => ({ $gt: value }),
  '>=': ([value]) => ({ $gte: value }),
  '<': ([value]) => ({ $lt: value }),
  '<=': ([value]) => ({ $lte: value }),
};

/**
 * Conditions such as `data.order.id = 42 and headers.x-shop = acme`, or words. Conditions become a
 * filter of the subscription language.
 * @throws Error that names the place of a mistake and shows an example
 */
export function parseSearch(text: string): EventSearch {
  const tokens = [...text.matchAll(TOKEN)].map(({ 0: token, index }) => ({ token, at: index + 1 }));
  const isOperator = (token = '') => Object.hasOwn(OPERATORS, token);
  if (!PATH.test(tokens[0]?.token ?? '') && !isOperator(tokens[1]?.token))
    return {
      words: (text.match(/"[^"]*"|\S+/g) ?? []).map((it) => it.replace(/^"(.*)"$/, '$1')),
      texts: [],
    };
  const parts = { data: [] as object[], headers: [] as object[] };
  const texts: string[] = [];
  for (let next = 0; ; next++) {
    const expect = (what: string): Error =>
      new Error(`needs ${what} at character ${tokens[next]?.at ?? text.length + 1}, ${EXAMPLE}`);
    const [, part, path] = PATH.exec(tokens[next]?.token ?? '') ?? [];
    if (!path) throw expect('a path that begins with data. or headers.');
    next++;
    const operator = tokens[next]?.token;
    let operand: unknown = { $exist: true };
    let wanted: string | undefined;
    if (operator !== undefined && operator !== 'and') {
      if (!isOperator(operator)) throw expect('one of =, !=, >, >=, < and <=');
      next++;
      const value = tokens[next]?.token;
      const values = value === undefined || isOperator(value) ? [] : valuesOf(value);
      if (values.length === 0) throw expect('a value');
      operand = OPERATORS[operator]!(values);
      if (operator === '=') wanted = textOf(values[0], value!);
      next++;
    }
    parts[part as 'data' | 'headers'].push({
      [part === 'headers' ? path.toLowerCase() : path]: operand,
    });
    if (part === 'data' && operator !== '!=')
      texts.push(
        ...(wanted ? [wanted] : []),
        // A dot can belong to a name.
        ...path
          .split(/\\?\./)
          .map(
            (name, at, names) =>
              `${at === 0 ? '"' : ''}${name}${at + 1 === names.length ? '"' : ''}`,
          )
          .filter((name) => /^"?[\w -]*[a-z_][\w -]*"?$/i.test(name)),
      );
    if (next >= tokens.length) break;
    if (tokens[next]!.token !== 'and')
      throw expect('"and", or quotes around a value of several words,');
  }
  const [data, headers] = [parts.data, parts.headers].map((it) => compileFilter({ $and: it }));
  return {
    words: [],
    texts,
    matches: (...json) => holds(data!, json[0]) && holds(headers!, json[1]),
  };
}

/** `42` is a number or a string. */
function valuesOf(token: string): unknown[] {
  if (token.startsWith('"')) {
    try {
      return [JSON.parse(token)];
    } catch {
      return [];
    }
  }
  if (NUMBER.test(token)) return [Number(token), token];
  return LITERALS.has(token) ? [LITERALS.get(token), token] : [token];
}

/** Data with a number that has an exponent, in JavaScript and Postgres. */
export const EXPONENT = '[ ,:\\t\\r\\n[]-?[0-9]+([.][0-9]+)?[eE]';

/** The JSON of an equal value contains it. */
function textOf(value: unknown, token: string): string | undefined {
  // Quotes, slashes and control characters can be escaped in several ways.
  if (typeof value === 'string')
    // eslint-disable-next-line no-control-regex
    return value.split(/["\\/\u0000-\u001f]/).sort((a, b) => b.length - a.length)[0];
  // A fraction can have other digits, as 0.3 and 0.29999999999999999.
  return /^-?(\d+|[a-z]+)$/.exec(token)?.[1];
}

/** A regular expression, for JavaScript and Postgres. */
export function spellingsOf(text: string): string {
  const literally = (it: string) => it.replace(/[^\w\u0080-\uffff]/g, '\\$&');
  return Array.from(text, (character) => {
    const units = character
      .split('')
      .map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'))
      .map((hex) => `\\\\u${hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)}`);
    const escaped = character === '/' ? '\\/' : JSON.stringify(character).slice(1, -1);
    return `(?:${literally(character)}|${literally(escaped)}|${units.join('')})`;
  }).join('');
}

function holds(filter: Filter, json: string): boolean {
  try {
    return filter(JSON.parse(json), new FilterBudget());
  } catch {
    return false;
  }
}
