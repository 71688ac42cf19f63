// @ts-check
import fs from 'node:fs';
import path from 'node:path';
import { accessOf, operationsOf, RESOURCES } from '@gateway/server/openapi';
import { routes } from '@gateway/server/routes';
import { code, table, withBlock } from './markdown.mjs';

/** The portal links that can use a route too. */
const OF_PORTAL = { any: ', portal link', managing: ', portal link that manages' };

const hasScope = (/** @type {string} */ group) => RESOURCES[group]?.scopes.length !== 0;

/**
 * Returns the management API's page with its list of routes replaced.
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
  return withBlock(page, 'routes', table(['Method', 'Path', 'Client', 'Role', 'Scope', ''], rows));
}
