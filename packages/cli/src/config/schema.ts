import type { Setting, SettingsTable } from '@gateway/core/config';

/** A JSON Schema, or a part of one. */
export type JsonSchema = Readonly<Record<string, unknown>>;

interface Group extends JsonSchema {
  readonly properties: Record<string, JsonSchema>;
}

/** The formats of settings as patterns, which every validator knows. Where a pattern cannot tell, it lets more pass than the gateway does. */
const patterns: Readonly<Record<NonNullable<Setting['format']>, string>> = {
  cidr: '^[0-9a-fA-F:.]+/[0-9]{1,3}$',
  url: '^[hH][tT][tT][pP][sS]?://[^\\s/]',
  address: '^(\\[[0-9a-fA-F:.]+\\]|[^\\s:/@\\[\\]]*):[0-9]{1,5}$',
  target: '^([hH][tT][tT][pP][sS]?://)?(\\[[0-9a-fA-F:.]+\\]|[^\\s:/@\\[\\]]+):[0-9]{1,5}/?$',
  dsn: '^https?://\\w+(:\\w*)?@(\\[[0-9a-fA-F:.]+\\]|[\\w.-]+)(:[0-9]+)?/([\\w./-]+/)?[0-9]+$',
  prefix: '^(/[A-Za-z0-9._~-]+)*$',
  email: '^([^<]*<[^\\s@<>]+@[^\\s@<>]+>|[^\\s@<>]+@[^\\s@<>]+)$',
};

/**
 * The JSON Schema (draft 2020-12) of the configuration file. It allows every file that the gateway takes, as long as lists are written as lists, and
 * refuses unknown keys and wrong types; what concerns several settings, `gateway config check` tells.
 *
 * @param rows the table, with the rows of the plugins
 */
export function configSchema(rows: SettingsTable): JsonSchema {
  const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'gateway.json', ...group() };
  schema.properties['$schema'] = { description: 'Where this schema is, for editors; otherwise ignored.', type: 'string' };
  for (const [key, row] of Object.entries(rows)) {
    if (row.withdrawn !== undefined) continue;
    const path = key.split('.');
    const last = path.pop()!;
    let at: Group = schema;
    for (const part of path) at = (at.properties[part] ??= group()) as Group;
    at.properties[last] = property(row);
  }
  return schema;
}

function group(): Group {
  return { type: 'object', additionalProperties: false, properties: {} };
}

function property({ type, summary, options, format, min, max, secret, default: value }: Setting): JsonSchema {
  const values = {
    ...(options && options.length > 0 ? { enum: options } : {}),
    ...(format === undefined ? {} : { pattern: patterns[format] }),
  };
  return {
    description: summary,
    ...(type === 'list' ? { type: 'array', items: { type: 'string', ...values } } : { type, ...values }),
    ...(min === undefined ? {} : { minimum: min }),
    ...(max === undefined ? {} : { maximum: max }),
    ...(value === undefined ? {} : { default: value }),
    ...(secret ? { writeOnly: true } : {}),
  };
}
