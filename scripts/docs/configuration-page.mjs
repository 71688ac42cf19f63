// @ts-check
import { envOf, keysOf } from '#core/config/settings';
import { code, MADE, table } from './markdown.mjs';

/** @typedef {import('#core/config/settings').Setting} Setting */
/** @typedef {import('#core/config/settings').SettingsTable} SettingsTable */

const INTRODUCTION = `Every setting has a key in the configuration file and an environment variable; some have a flag. Flags override environment variables, which override the
file, which overrides the default. The file is \`./gateway.json\`, or the one given with \`--config\`. A key with dots is a path in it: \`server.http.port\` is
\`{ "server": { "http": { "port": 5005 } } }\`. Name [gateway.schema.json](gateway.schema.json) as \`"$schema"\` for completion and checks in editors; \`gateway config schema\` prints the
schema with the settings of installed plugins.

\`gateway config\` prints the effective settings, \`gateway config --origins\` where each comes from, and \`gateway config check\` every problem with its line in the file and the state of
each plugin (exit status 1 if there are problems). An unknown or invalid setting stops every command that reads settings, and all problems are reported together; an invalid setting of a
plugin only keeps that plugin inactive. An empty environment variable counts as unset, and so
does one that Kubernetes makes for a service, such as \`GATEWAY_DB_PORT=tcp://10.96.0.7:5432\`: a warning names it. In variables and flags, lists are separated by commas; a flag may also be repeated.`;

/**
 * Generates the page of all settings, including those of installed plugins.
 * @param {SettingsTable} rows
 */
export function configurationPage(rows) {
  const settings = Object.entries(rows).filter(([, row]) => row.withdrawn === undefined);
  const withdrawn = Object.entries(rows).flatMap(([key, row]) =>
    row.withdrawn === undefined ? [] : [[formsOf(key, row), sentence(row.withdrawn)]],
  );
  return [
    '# Configuration',
    MADE,
    INTRODUCTION,
    settingsTable(settings),
    `## Withdrawn\n\nThe gateway refuses these forms.\n\n${table(['Form', 'Instead'], withdrawn)}`,
  ]
    .join('\n\n')
    .concat('\n');
}

/** @param {readonly (readonly [string, Setting])[]} list */
function settingsTable(list) {
  return table(
    ['Key', 'Variable', 'Flag', 'Value', 'Default', 'Meaning'],
    list.map(([key, row]) => [
      keysOf(key, row).map(code).join(', '),
      code(envOf(key, row)),
      flagsOf(row),
      valueOf(row),
      defaultOf(row),
      meaningOf(row),
    ]),
  );
}

/** @param {Setting} row */
function flagsOf({ flag, on, alias }) {
  const own = flag ? [`${code(`--${flag}`)}${on ? ` on ${on.map(code).join(', ')}` : ''}`] : [];
  const second = alias ? [`${code(`--${alias.flag}`)} on ${alias.on.map(code).join(', ')}`] : [];
  return [...own, ...second].join('; ');
}

/** @param {Setting} row */
function valueOf({ type, options, min, max, format }) {
  if (options && options.length > 0) return options.map(code).join(', ');
  const bounds =
    min !== undefined && max !== undefined
      ? `, ${min} to ${max}`
      : min !== undefined
        ? `, at least ${min}`
        : '';
  return `${type}${format === 'cidr' ? ' of networks like `10.0.0.0/8`' : ''}${bounds}`;
}

/** @param {Setting} row */
function defaultOf(row) {
  const { default: value } = row;
  if (value === undefined || value === '') return '';
  return Array.isArray(value)
    ? value.length === 0
      ? 'none'
      : code(value.join(','))
    : code(String(value));
}

/** @param {Setting} row */
function meaningOf({ summary, secret, flagUnset, owner, required }) {
  const notes = [
    ...(secret ? ['Secret: always masked.'] : []),
    ...(flagUnset === 'negative' ? ['A negative flag counts as unset.'] : []),
    ...(flagUnset === 'zero' ? ['A flag of 0 counts as unset.'] : []),
    ...(required ? ['Required.'] : []),
    ...(owner ? [`Of ${owner}.`] : []),
  ];
  return [summary, ...notes].join(' ');
}

/**
 * @param {string} key
 * @param {Setting} row
 */
function formsOf(key, row) {
  return [code(key), code(envOf(key, row)), ...(row.flag ? [code(`--${row.flag}`)] : [])].join(
    ', ',
  );
}

/** @param {string} text */
function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
