import { isObject } from '../json/json-object.js';

/**
 * A compiled filter of a subscription. A filter is an object whose members must all hold: a value (equal), an object of operators, or an object of nested
 * members. `a.b` names a nested member; `$or` and `$and` take lists of filters. There is no `$regex`: one tenant's pattern could block the deliveries of others.
 */
export type Filter = (value: unknown) => boolean;

type Operator = (operand: unknown) => Filter;

const operators: Readonly<Record<string, Operator>> = {
  $eq: (operand) => (value) => equal(value, operand),
  $neq: (operand) => (value) => !equal(value, operand),
  $gt: (operand) => (value) => compare(value, operand) > 0,
  $gte: (operand) => (value) => compare(value, operand) >= 0,
  $lt: (operand) => (value) => compare(value, operand) < 0,
  $lte: (operand) => (value) => compare(value, operand) <= 0,
  $in: (operand) => isOneOf('$in', operand),
  $nin: (operand) => {
    const found = isOneOf('$nin', operand);
    return (value) => !found(value);
  },
  $exist: (operand) => {
    if (typeof operand !== 'boolean') throw new Error('$exist takes true or false.');
    return (value) => (value !== undefined) === operand;
  },
};

export const filterOperators: readonly string[] = [...Object.keys(operators), '$or', '$and'];

/** Compiles a filter document. Throws an Error that names an unknown operator, or one with an invalid operand. */
export function compileFilter(document: Readonly<Record<string, unknown>>): Filter {
  const parts = Object.entries(document).map(([name, operand]) => compileMember(name, operand));
  return (value) => parts.every((part) => part(value));
}

function compileMember(name: string, operand: unknown): Filter {
  if (name === '$or' || name === '$and') {
    if (!Array.isArray(operand) || !operand.every(isObject)) throw new Error(`${name} takes a list of filters.`);
    const filters = operand.map(compileFilter);
    return name === '$or' ? (value) => filters.some((filter) => filter(value)) : (value) => filters.every((filter) => filter(value));
  }
  if (name.startsWith('$')) {
    const operator = operators[name];
    if (!operator) throw new Error(`${name} is not an operator. Operators: ${filterOperators.join(', ')}.`);
    return operator(operand);
  }
  const path = name.split('.');
  const inner = isObject(operand) ? compileFilter(operand) : (operators['$eq'] as Operator)(operand);
  return (value) => inner(memberAt(value, path));
}

function isOneOf(name: string, operand: unknown): Filter {
  if (!Array.isArray(operand)) throw new Error(`${name} takes a list of values.`);
  return (value) => operand.some((one) => equal(value, one));
}

/** The member at a path; undefined if absent. */
export function memberAt(value: unknown, path: readonly string[]): unknown {
  let at: unknown = value;
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && equal((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name]))
  );
}

/** Order of two numbers or two strings; otherwise NaN, for which no comparison holds. */
function compare(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0;
  return NaN;
}
