import { isObject } from '../json/json-value.js';

/**
 * A compiled subscription filter. A value matches if all properties of the filter match. The
 * operand of a property is a value to equal, an object of operators, or nested properties. `a.b`
 * addresses a nested property, and `$or` and `$and` take lists of filters. There is no `$regex`,
 * because one tenant's pattern could block the deliveries of others.
 * @throws FilterBudgetError if the budget is exceeded
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

  /**
   * @param counted precomputed property counts of large objects, because counting takes
   *   milliseconds
   */
  constructor(
    private readonly most: number = FILTER_STEPS_MAX,
    private readonly counted?: ReadonlyMap<object, number>,
  ) {}

  get cost(): number {
    return this.#spent + this.parsedCharacters / CHARACTERS_PER_STEP;
  }

  /**
   * Adds steps to the cost.
   * @throws FilterBudgetError if the budget is exceeded
   */
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
 * The step budget for one event: about 2 ms on one core, and enough for 1,000 subscriptions with
 * 100 comparisons each.
 */
export const FILTER_STEPS_MAX = 100_000;
/**
 * The number of characters of JSON with many small properties that can be parsed in the time of one
 * comparison.
 */
const CHARACTERS_PER_STEP = 1;

export class FilterBudgetError extends Error {
  constructor() {
    super(`the filters of the project compare more than ${FILTER_STEPS_MAX} values for this event`);
  }
}

/** Limits of a filter. They apply to the header filter and the body filter separately. */
export const FILTER_BYTES_MAX = 16 * 1024;
export const FILTER_NODES_MAX = 200;
export const FILTER_DEPTH_MAX = 20;

type Operator = (operand: unknown) => Filter;

const operators: Readonly<Record<string, Operator>> = {
  $eq: (operand) => (value, budget) => equal(value, operand, budget),
  $neq: (operand) => (value, budget) => !equal(value, operand, budget),
  $gt: (operand) => (value) => compare(value, operand) > 0,
  $gte: (operand) => (value) => compare(value, operand) >= 0,
  $lt: (operand) => (value) => compare(value, operand) < 0,
  $lte: (operand) => (value) => compare(value, operand) <= 0,
  $in: (operand) => isOneOf('$in', operand),
  $nin: (operand) => {
    const found = isOneOf('$nin', operand);
    return (value, budget) => !found(value, budget);
  },
  $exist: (operand) => {
    if (typeof operand !== 'boolean') throw new Error('$exist takes true or false.');
    return (value) => (value !== undefined) === operand;
  },
};

export const filterOperators: readonly string[] = [...Object.keys(operators), '$or', '$and'];

/**
 * Compiles a filter.
 * @throws Error that names the invalid operator or operand, or the exceeded limit
 */
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
      nodes += Array.isArray(value) ? 1 : name.split('.').length;
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
  const path = name.split('.');
  const inner = isObject(operand)
    ? compileMembers(operand)
    : (operators['$eq'] as Operator)(operand);
  return (value, budget) => inner(memberAt(value, path), budget);
}

function isOneOf(name: string, operand: unknown): Filter {
  if (!Array.isArray(operand)) throw new Error(`${name} takes a list of values.`);
  return (value, budget) => operand.some((one) => equal(value, one, budget));
}

export function memberAt(value: unknown, path: readonly string[]): unknown {
  let at: unknown = value;
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

/**
 * Compares two values deeply.
 * @param b a value from the filter, whose size limits the work
 */
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
 * Compares two numbers or two strings. Returns NaN for other types, so that `$gt`, `$gte`, `$lt`
 * and `$lte` never match them.
 */
function compare(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0;
  return NaN;
}
