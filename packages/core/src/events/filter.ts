import { isObject } from '../json/json-value.js';

/**
 * A value matches if all properties of the filter match. The operand of a property is a value to
 * equal, an object of operators, or nested properties. `$or` and `$and` take lists of filters.
 * There is no `$regex`, because one tenant's pattern could block the deliveries of others.
 *
 * `a.b` addresses a nested property or, if there is none, one that has this name; `a\.b` only the
 * latter. As in MongoDB, a path leads through lists to the properties of their elements, and an
 * operator holds for a list if it holds for the list or one of its elements, except that `$neq` and
 * `$nin` negate `$eq` and `$in`.
 * @throws FilterBudgetError
 */
export type Filter = (value: unknown, budget: FilterBudget) => boolean;

/**
 * Limits the work that a project's filters do for one event. Each comparison costs one step. Each
 * object in the event costs one step per property, but only once.
 */
export class FilterBudget {
  readonly #sizes = new Map<object, number>();

  #spent = 0;
  parsedCharacters = 0;

  /** @param counted property counts of large objects, because counting takes milliseconds */
  constructor(
    private readonly most: number = FILTER_STEPS_MAX,
    private readonly counted?: ReadonlyMap<object, number>,
  ) {}

  get cost(): number {
    return this.#spent + this.parsedCharacters / CHARACTERS_PER_STEP;
  }

  /** @throws FilterBudgetError */
  spend(steps: number): void {
    this.#spent += steps;
    if (this.#spent > this.most) throw new FilterBudgetError();
  }

  sizeOf(value: object): number {
    if (Array.isArray(value)) return value.length;
    let size = this.#sizes.get(value);
    if (size === undefined) {
      size = this.counted?.get(value) ?? Object.keys(value).length;
      this.#sizes.set(value, size);
      this.spend(size);
    }
    return size;
  }
}

/**
 * For one event: about 2 ms on one core, and enough for 1,000 subscriptions with 100 comparisons
 * each.
 */
export const FILTER_STEPS_MAX = 100_000;
/** JSON with many small properties, parsed in the time of one comparison. */
const CHARACTERS_PER_STEP = 1;

/** Looked up in the time of one comparison. */
const CHARACTERS_PER_NAME = 64;

export class FilterBudgetError extends Error {
  constructor() {
    super(`the filters of the project compare more than ${FILTER_STEPS_MAX} values for this event`);
  }
}

/** For the header filter and the body filter separately. */
export const FILTER_BYTES_MAX = 16 * 1024;
export const FILTER_NODES_MAX = 200;
export const FILTER_DEPTH_MAX = 20;

type Operator = (operand: unknown) => Filter;

/** The values at a path that leads through lists. */
class Several {
  constructor(readonly values: readonly unknown[]) {}
}

/** Tests a value, several values, or the elements of a list. */
function some(value: unknown, budget: FilterBudget, test: (one: unknown) => boolean): boolean {
  if (value instanceof Several) return value.values.some((one) => some(one, budget, test));
  if (test(value)) return true;
  if (!Array.isArray(value)) return false;
  return value.some((one) => {
    budget.spend(1);
    return test(one);
  });
}

const comparison =
  (holds: (order: number) => boolean): Operator =>
  (operand) =>
  (value, budget) =>
    some(value, budget, (one) => holds(compare(one, operand)));

const not =
  (operator: Operator): Operator =>
  (operand) => {
    const filter = operator(operand);
    return (value, budget) => !filter(value, budget);
  };

const $eq: Operator = (operand) => (value, budget) =>
  some(value, budget, (one) => equal(one, operand, budget));
const isOneOf =
  (name: string): Operator =>
  (operand) => {
    if (!Array.isArray(operand)) throw new Error(`${name} takes a list of values.`);
    return (value, budget) =>
      operand.some((wanted) => some(value, budget, (one) => equal(one, wanted, budget)));
  };

const operators: Readonly<Record<string, Operator>> = {
  $eq,
  $neq: not($eq),
  $gt: comparison((order) => order > 0),
  $gte: comparison((order) => order >= 0),
  $lt: comparison((order) => order < 0),
  $lte: comparison((order) => order <= 0),
  $in: isOneOf('$in'),
  $nin: not(isOneOf('$nin')),
  $exist: (operand) => {
    if (typeof operand !== 'boolean') throw new Error('$exist takes true or false.');
    return (value) => (value !== undefined) === operand;
  },
};

export const filterOperators: readonly string[] = [...Object.keys(operators), '$or', '$and'];

/** @throws Error that names the invalid operator or operand, or the exceeded limit */
export function compileFilter(document: Readonly<Record<string, unknown>>): Filter {
  checkSize(document);
  return compileMembers(document);
}

function checkSize(document: Readonly<Record<string, unknown>>): void {
  let nodes = 0;
  const visit = (value: unknown, depth: number): void => {
    if (typeof value !== 'object' || value === null) return;
    if (depth > FILTER_DEPTH_MAX)
      throw new Error(
        `The filter nests objects or lists ${depth} deep or more; at most ${FILTER_DEPTH_MAX} are allowed.`,
      );
    for (const [name, inner] of Object.entries(value)) {
      nodes += Array.isArray(value) ? 1 : namesOf(name).length;
      if (nodes <= FILTER_NODES_MAX) visit(inner, depth + 1);
    }
  };
  visit(document, 1);
  if (nodes > FILTER_NODES_MAX)
    throw new Error(
      `The filter has ${nodes} nodes or more; at most ${FILTER_NODES_MAX} are allowed. Each name of a path and each value of a list is one.`,
    );
  const bytes = Buffer.byteLength(JSON.stringify(document));
  if (bytes > FILTER_BYTES_MAX)
    throw new Error(
      `The filter has ${bytes} bytes of JSON; at most ${FILTER_BYTES_MAX} are allowed.`,
    );
}

function compileMembers(document: Readonly<Record<string, unknown>>): Filter {
  const parts = Object.entries(document).map(([name, operand]) => compileMember(name, operand));
  return (value, budget) => {
    budget.spend(parts.length);
    return parts.every((part) => part(value, budget));
  };
}

function compileMember(name: string, operand: unknown): Filter {
  if (name === '$or' || name === '$and') {
    if (!Array.isArray(operand) || !operand.every(isObject))
      throw new Error(`${name} takes a list of filters.`);
    const filters = operand.map(compileMembers);
    return name === '$or'
      ? (value, budget) => filters.some((filter) => filter(value, budget))
      : (value, budget) => filters.every((filter) => filter(value, budget));
  }
  if (name.startsWith('$')) {
    const operator = operators[name];
    if (!operator)
      throw new Error(`${name} is not an operator. Operators: ${filterOperators.join(', ')}.`);
    return operator(operand);
  }
  const names = namesOf(name);
  const inner = isObject(operand) ? compileMembers(operand) : $eq(operand);
  return (value, budget) => inner(memberAt(value, names, budget), budget);
}

/** At its dots, except escaped ones. */
function namesOf(path: string): readonly string[] {
  return path.split(/(?<!\\)\./).map((name) => name.replaceAll('\\.', '.'));
}

/** A list if the path leads through lists. */
export function valueAt(value: unknown, path: string, budget: FilterBudget): unknown {
  return memberAt(value, namesOf(path), budget);
}

/** As JSON. */
export function shownOf(value: unknown): unknown {
  return value instanceof Several ? value.values : value;
}

function memberAt(
  value: unknown,
  names: readonly string[],
  budget: FilterBudget,
  from = 0,
): unknown {
  const name = names[from];
  if (name === undefined) return value;
  if (value instanceof Several || (Array.isArray(value) && !Object.hasOwn(value, name)))
    return throughList(value, names, budget, from);
  if (typeof value !== 'object' || value === null) return undefined;
  const nested = Object.hasOwn(value, name)
    ? memberAt((value as Record<string, unknown>)[name], names, budget, from + 1)
    : undefined;
  if (nested !== undefined || from + 1 === names.length) return nested;
  const literal = names.slice(from).join('.');
  budget.spend(Math.floor(literal.length / CHARACTERS_PER_NAME));
  return Object.hasOwn(value, literal) ? (value as Record<string, unknown>)[literal] : undefined;
}

function throughList(
  list: Several | readonly unknown[],
  names: readonly string[],
  budget: FilterBudget,
  from: number,
): Several | undefined {
  // As in MongoDB, elements that are lists are not looked into, except by their number.
  const elements = list instanceof Several ? list.values : list.filter(isObject);
  budget.spend(elements.length);
  const found = elements.flatMap((one) => {
    const member = memberAt(one, names, budget, from);
    return member instanceof Several ? member.values : [member];
  });
  const values = found.filter((one) => one !== undefined);
  return values.length > 0 ? new Several(values) : undefined;
}

/** @param b a value from the filter, whose size limits the work */
function equal(a: unknown, b: unknown, budget: FilterBudget): boolean {
  budget.spend(1);
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(b);
  return (
    names.length === budget.sizeOf(a) &&
    names.every(
      (name) =>
        Object.hasOwn(a, name) &&
        equal((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name], budget),
    )
  );
}

/**
 * NaN for types other than two numbers or two strings, so that `$gt`, `$gte`, `$lt` and `$lte`
 * never match them.
 */
function compare(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0;
  return NaN;
}
