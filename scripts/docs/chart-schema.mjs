// @ts-check
import { configSchema } from '#cli/config/schema';
import { envOf, keysOf } from '#core/config/settings';

/** Settings that the chart sets. */
const SET = ['server.http.port', 'server.http.agent_port', 'agent.mode'];

/** Settings that templates read, so that a variable must not overrule `config`. */
const READ = [
  'root_path',
  'server.http.ssl',
  'server.http.drain_delay_seconds',
  'agent.drain_timeout_seconds',
];

/** @typedef {{ properties?: Record<string, any>, [keyword: string]: any }} Schema */

/**
 * Returns the schema of the values of the chart with definitions of `config`, by the schema of
 * gateway.json, and of the environment variables.
 * @param {Schema} values
 * @param {import('#core/config/settings').SettingsTable} rows
 */
export function chartSchema(values, rows) {
  const config = /** @type {Schema} */ (configSchema(rows));
  const { $schema: _, title: __, ...definition } = bare(config);
  // Plugins that are not of this repository have flags, and settings below their names.
  delete definition.properties.enable_feature_flag.items.enum;
  for (const home of ['source', 'tracer', 'metrics'])
    definition.properties[home].additionalProperties = { type: 'object' };
  /** @type {Record<string, Schema>} */
  const env = {};
  /** @type {string[]} */
  const own = [];
  for (const [key, row] of Object.entries(rows)) {
    const isSet = SET.includes(key);
    if (isSet || READ.includes(key)) own.push(envOf(key, row));
    if (row.secret) env[envOf(key, row)] = { type: 'object' };
    if (isSet || row.secret) for (const place of keysOf(key, row)) refuse(definition, place);
  }
  const text = { type: ['string', 'object'], required: ['valueFrom'], additionalProperties: false };
  values.definitions.config = definition;
  values.definitions.ownVariables = { not: { enum: own.sort() } };
  values.definitions.env = {
    type: 'object',
    propertyNames: { $ref: '#/definitions/ownVariables' },
    additionalProperties: { ...text, properties: { valueFrom: { type: 'object' } } },
    properties: env,
  };
  return values;
}

/**
 * @param {Schema} schema
 * @param {string} place
 */
function refuse(schema, place) {
  const path = place.split('.');
  const last = String(path.pop());
  /** @type {any} */
  let at = schema;
  for (const part of path) at = at.properties[part];
  at.properties[last] = false;
}

/**
 * Returns a schema without descriptions and defaults.
 * @param {Schema} schema
 * @returns {any}
 */
function bare({ description: _, default: __, writeOnly: ___, properties, ...rest }) {
  if (!properties) return rest;
  const each = Object.entries(properties).map(([name, it]) => [name, bare(it)]);
  return { ...rest, properties: Object.fromEntries(each) };
}
