// @ts-check
import { envOf } from '#core/config/setting';
import { code, MADE, table } from './markdown.mjs';

/** @typedef {import('#core/config/settings').Setting} Setting */
/** @typedef {import('#core/config/settings').SettingsTable} SettingsTable */

const INTRODUCTION = `Every setting has a key in the configuration file and an environment variable; some have a flag. Flags win over environment
variables, these over the file, and the file over the default. The file is \`./gateway.json\`, or what \`--config\` names; a key with dots is a path
in it: \`server.http.port\` is \`{ "server": { "http": { "port": 5005 } } }\`. [gateway.schema.json](gateway.schema.json) is its JSON Schema:
editors check the file against it when \`"$schema"\` in the file names it; the gateway ignores that key. \`gateway config schema\` prints the schema with
the settings of the plugins that are installed.

\`gateway config\` prints the settings as a process would use them, \`gateway config --origins\` where each comes from. \`gateway config check\` tells
everything that is wrong, with its line in the file, and whether each plugin would be active; its status is 1 when anything is. A setting that is
unknown or wrong stops every command that reads settings, with all mistakes told at once; a wrong setting of a plugin keeps that plugin inactive. An
environment variable that is empty counts as not set. In variables and flags a list is written with commas; a flag may also be repeated.`;

/**
 * The page of all settings, those of the installed plugins included.
 * @param {SettingsTable} rows
 */
export function configurationPage(rows) {
  const settings = Object.entries(rows).filter(([, row]) => row.withdrawn === undefined);
  const groups = new Map();
  for (const [key, row] of settings) {
    const group = key.includes('.') ? key.slice(0, key.indexOf('.')) : '';
    groups.set(group, [...(groups.get(group) ?? []), [key, row]]);
  }
  const sections = [...groups].map(([group, list]) => `## ${group === '' ? 'General' : code(group)}\n\n${settingsTable(list)}`);
  const withdrawn = Object.entries(rows).flatMap(([key, row]) =>
    row.withdrawn === undefined ? [] : [[formsOf(key, row), sentence(row.withdrawn)]],
  );
  return [
    '# Configuration',
    MADE,
    INTRODUCTION,
    ...sections,
    `## Withdrawn\n\nThese forms are refused.\n\n${table(['Form', 'Instead'], withdrawn)}`,
  ]
    .join('\n\n')
    .concat('\n');
}

/** @param {readonly [string, Setting][]} list */
function settingsTable(list) {
  return table(
    ['Key', 'Variable', 'Flag', 'Value', 'Default', 'Meaning'],
    list.map(([key, row]) => [code(key), code(envOf(key, row)), flagsOf(row), valueOf(row), defaultOf(row), meaningOf(row)]),
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
  const bounds = min !== undefined && max !== undefined ? `, ${min} to ${max}` : min !== undefined ? `, at least ${min}` : '';
  return `${type}${format === 'cidr' ? ' of networks like `10.0.0.0/8`' : ''}${bounds}`;
}

/** @param {Setting} row */
function defaultOf(row) {
  const { default: value } = row;
  if (value === undefined || value === '') return '';
  return Array.isArray(value) ? (value.length === 0 ? 'none' : code(value.join(','))) : code(String(value));
}

/** @param {Setting} row */
function meaningOf({ summary, secret, flagUnset, owner, required }) {
  const notes = [
    ...(secret ? ['Secret: masked wherever it is shown.'] : []),
    ...(flagUnset === 'negative' ? ['A negative flag counts as not given.'] : []),
    ...(flagUnset === 'zero' ? ['A flag of 0 counts as not given.'] : []),
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
  return [code(key), code(envOf(key, row)), ...(row.flag ? [code(`--${row.flag}`)] : [])].join(', ');
}

/** @param {string} text */
function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
