// @ts-check
import fs from 'node:fs';
import path from 'node:path';
import { BASE, placeAt } from '@gateway/docs';

/**
 * Checks the pages of a built site: links lead to files and headings of it, and nothing is loaded
 * from another server.
 * @param {string} site
 * @returns {string[]} problems
 */
export function problemsOf(site) {
  const names = filesIn(site);
  /** @type {Map<string, string>} */
  const pages = new Map(
    names
      .filter((name) => name.endsWith('.html'))
      .map((name) => [name, placeAt(fs.readFileSync(path.join(site, name), 'utf8'), BASE)]),
  );
  const ids = new Map(
    [...pages].map(([name, text]) => [
      name,
      new Set([...text.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => id)),
    ]),
  );
  const files = new Set(names);
  return [...pages].flatMap(([page, text]) =>
    [...text.matchAll(/<(\w+)[^>]*?\s(href|src|srcset)="([^"]*)"/g)].flatMap(
      ([, tag, attribute, value = '']) => {
        const target = value.replaceAll('&amp;', '&').replaceAll('&#x27;', "'");
        if (target.startsWith('data:') || target.startsWith('mailto:')) return [];
        if (/^([a-z]+:)?\/\//.test(target))
          return tag === 'a' ? [] : [`${page}: <${tag} ${attribute}> loads ${target}`];
        const [place = '', anchor] = target.split('#');
        const name = decodeURI(
          place === ''
            ? page
            : place.startsWith(`${BASE}/`)
              ? place.slice(BASE.length + 1)
              : path.posix.join(path.posix.dirname(page), place),
        ).replace(/(^|\/)$/, '$1index.html');
        if (!files.has(name)) return [`${page}: ${target} leads to no page`];
        if (anchor && pages.has(name) && !ids.get(name)?.has(decodeURIComponent(anchor)))
          return [`${page}: ${target} leads to no heading`];
        return [];
      },
    ),
  );
}

/**
 * Returns the files of a folder and its folders, with `/`.
 * @param {string} folder
 */
export function filesIn(folder) {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'),
    );
}
