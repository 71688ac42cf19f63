// @ts-check
import fs from 'node:fs';
import path from 'node:path';
import { accessOf, openApiDocument, operationsOf, RESOURCES } from '@gateway/server/openapi';
import { routes } from '@gateway/server/routes';
import { FINDINGS } from '#server/explain/table';
import { code, table, withBlock } from './markdown.mjs';

/** The portal links that can use a route too. */
const OF_PORTAL = { any: ', portal link', managing: ', portal link that manages' };

const hasScope = (/** @type {string} */ group) => RESOURCES[group]?.scopes.length !== 0;

/**
 * Returns the management API's page with its lists of routes and fields replaced.
 * @param {string} root
 */
export function httpPage(root) {
  const page = fs.readFileSync(path.join(root, 'docs/reference/http.md'), 'utf8');
  const rows = operationsOf(routes).map(({ route, path: place, group, name }) => [
    route.method.toUpperCase(),
    code(place),
    code(`${group}.${name}`),
    route.reach === 'open'
      ? 'anyone'
      : route.role === 'instance'
        ? 'instance admin'
        : route.reach === 'account'
          ? 'any user'
          : accessOf(route).role + (route.portal === undefined ? '' : OF_PORTAL[route.portal]),
    hasScope(group) ? code(accessOf(route).scope) : '',
    route.summary,
  ]);
  const listed = table(['Method', 'Path', 'Client', 'Role', 'Scope', ''], rows);
  const { schemas } = openApiDocument(routes, { version: '', rootPath: '' }).components;
  const fields = fieldsTable(schemas['CreateEndpoint'], schemas['Endpoint']);
  const blocks = { routes: listed, endpoint: fields, findings: findingsTable() };
  return Object.entries(blocks).reduce((all, [name, text]) => withBlock(all, name, text), page);
}

function findingsTable() {
  const rows = Object.entries(FINDINGS).map(([name, [severity, page, headline]]) => [
    code(name),
    severity,
    String(headline.split('|').at(-1)).replace('{n} ', ''),
    code(page),
  ]);
  return table(['Code', 'Severity', 'Problem', 'Page'], rows);
}

/**
 * Lists the fields of a resource: those that a request sets, and those of answers only.
 * @param {any} created
 * @param {any} answered
 */
function fieldsTable({ properties: set, required }, { properties: shown }) {
  const answers = Object.entries(shown).filter(([name]) => !(name in set) && !isKey(name));
  return table(
    ['Field', 'Default', ''],
    [
      ...Object.entries(set).map(([name, schema]) => [
        code(name),
        required.includes(name) ? '' : defaultOf(schema),
        `${schema.description ?? ''} ${boundsOf(schema)}`.trim(),
      ]),
      ...answers.map(([name, { description = '' }]) => [code(name), '', description]),
    ],
  );
}

/** Every record has these fields. */
function isKey(/** @type {string} */ name) {
  return ['uid', 'project_id', 'created_at', 'updated_at'].includes(name);
}

/** @param {any} schema */
function defaultOf({ type, minLength, 'x-default': value }) {
  if (value !== undefined) return code(JSON.stringify(value));
  return [type].flat().includes('null') ? code('null') : minLength === 0 ? 'empty' : '';
}

/** @param {any} schema */
function boundsOf({ minimum, maximum }) {
  return maximum === undefined ? '' : `${minimum} to ${maximum}.`;
}
