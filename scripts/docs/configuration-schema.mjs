// @ts-check
import prettier from 'prettier';

/** @typedef {import('@gateway/core/settings').Setting} Setting */
/** @typedef {{ [name: string]: unknown, properties: Record<string, unknown> }} Group */

/**
 * The JSON Schema of the configuration file, as text.
 * @param {import('@gateway/core/settings').SettingsTable} rows
 * @returns {Promise<string>}
 */
export function configurationSchema(rows) {
  const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'gateway.json', ...group() };
  schema.properties['$schema'] = { description: 'Where this schema is, for editors; otherwise ignored.', type: 'string' };
  for (const [key, row] of Object.entries(rows)) {
    if (row.withdrawn !== undefined) continue;
    const path = key.split('.');
    const last = String(path.pop());
    /** @type {Group} */
    let at = schema;
    for (const part of path) at = /** @type {Group} */ (at.properties[part] ??= group());
    at.properties[last] = property(row);
  }
  return prettier.format(JSON.stringify(schema), { parser: 'json', printWidth: 140 });
}

/** @returns {Group} */
function group() {
  return { type: 'object', additionalProperties: false, properties: {} };
}

/** @param {Setting} row */
function property({ type, summary, options, min, max, secret, default: value }) {
  const values = options && options.length > 0 ? { enum: options } : {};
  const shape = type === 'list' ? { type: 'array', items: { type: 'string', ...values } } : { type, ...values };
  return {
    description: summary,
    ...shape,
    ...(min === undefined ? {} : { minimum: min }),
    ...(max === undefined ? {} : { maximum: max }),
    ...(value === undefined ? {} : { default: value }),
    ...(secret ? { writeOnly: true } : {}),
  };
}
