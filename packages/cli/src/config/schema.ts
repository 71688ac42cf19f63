import { formats, keysOf, type Setting, type SettingsTable } from '@gateway/core/config';
import type { StandaloneSchema } from '@gateway/core/openapi';

interface GroupSchema extends StandaloneSchema {
  readonly properties: Record<string, StandaloneSchema>;
}

/**
 * Draft 2020-12. Accepts every valid file whose lists are JSON arrays, and rejects unknown keys and
 * wrong types. `gateway config check` checks the rest.
 */
export function configSchema(rows: SettingsTable): StandaloneSchema {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'gateway.json',
    ...group(),
  };
  schema.properties['$schema'] = {
    description: 'Location of this schema, for editors; otherwise ignored.',
    type: 'string',
  };
  for (const [key, row] of Object.entries(rows)) {
    if (row.withdrawn !== undefined) continue;
    for (const place of keysOf(key, row)) {
      const path = place.split('.');
      const last = path.pop()!;
      let at: GroupSchema = schema;
      for (const part of path) at = (at.properties[part] ??= group()) as GroupSchema;
      at.properties[last] = property(row);
    }
  }
  return schema;
}

function group(): GroupSchema {
  return { type: 'object', additionalProperties: false, properties: {} };
}

function property({
  type,
  summary,
  options,
  format,
  min,
  max,
  secret,
  default: value,
}: Setting): StandaloneSchema {
  const values = {
    ...(options && options.length > 0 ? { enum: options } : {}),
    ...(format === undefined ? {} : { pattern: formats[format].pattern }),
  };
  return {
    description: summary,
    ...(type === 'list'
      ? { type: 'array', items: { type: 'string', ...values } }
      : { type, ...values }),
    ...(min === undefined ? {} : { minimum: min }),
    ...(max === undefined ? {} : { maximum: max }),
    ...(value === undefined ? {} : { default: value }),
    ...(secret ? { writeOnly: true } : {}),
  };
}
