import { compileFilter, memberAt } from '@gateway/core/events';
import { isObject } from '@gateway/core/json';

/** The first member of a filter that a value does not satisfy. */
export interface FilterMismatch {
  /** Where in the value, with dots: `order.amount`; empty for the value itself. */
  readonly path: string;
  readonly operator: string;
  /** What the filter wants of it; of `$or` the alternatives, none of which holds. */
  readonly wanted: unknown;
  /** What stands there; undefined when nothing does. */
  readonly found: unknown;
}

/**
 * Why a filter does not match a value; undefined when it does.
 *
 * @throws Error for a filter that cannot be compiled, as `compileFilter` does
 */
export function filterMismatch(document: Readonly<Record<string, unknown>>, value: unknown, at = ''): FilterMismatch | undefined {
  for (const [name, operand] of Object.entries(document)) {
    if (compileFilter({ [name]: operand })(value)) continue;
    if (name === '$and') return (operand as Record<string, unknown>[]).map((it) => filterMismatch(it, value, at)).find(Boolean);
    if (name.startsWith('$')) return { path: at, operator: name, wanted: operand, found: value };
    const path = at === '' ? name : `${at}.${name}`;
    const found = memberAt(value, name.split('.'));
    return isObject(operand) ? filterMismatch(operand, found, path) : { path, operator: '$eq', wanted: operand, found };
  }
  return undefined;
}
