import { isObject } from '../json/json-object.js';

/** JSON Schema of a connection. */
type Schema = Readonly<Record<string, unknown>>;
type Value = Readonly<Record<string, unknown>>;

/** The connection as its schema writes it: values of an `enum` may be given in any case, and `Enabled` and `Disabled` for a boolean. */
export function canonicalConnection(given: Value, schema: Schema): Value {
  return mapFields(given, schema, (value, { enum: values, type }) => {
    if (typeof value !== 'string') return value;
    if (type === 'boolean') return ({ enabled: true, disabled: false } as Record<string, unknown>)[value.toLowerCase()] ?? value;
    if (!Array.isArray(values)) return value;
    return (values as unknown[]).find((it) => typeof it === 'string' && it.toLowerCase() === value.toLowerCase()) ?? value;
  });
}

/** The connection as plugins get it, with the defaults of its schema. Stored are only the fields that were given, so a new default reaches every source. */
export function withDefaults(stored: Value, schema: Schema): Value {
  return mapFields(stored, schema, (value, field) => (value === undefined ? field['default'] : value));
}

/** Changes every field that the schema has, in objects at any depth; undefined leaves the field out. */
function mapFields(value: Value, schema: Schema, change: (value: unknown, field: Schema) => unknown): Value {
  const result: Record<string, unknown> = { ...value };
  for (const [name, field] of Object.entries((schema['properties'] as Record<string, Schema> | undefined) ?? {})) {
    const changed = isObject(field) ? change(value[name], field) : value[name];
    if (changed !== undefined) result[name] = isObject(changed) && isObject(field) ? mapFields(changed, field, change) : changed;
  }
  return result;
}
