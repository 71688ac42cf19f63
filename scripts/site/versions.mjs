// @ts-check
import fs from 'node:fs';
import path from 'node:path';
import { isText, placeAt } from '@gateway/docs';
import { filesIn } from './links.mjs';

/**
 * Copies the site to `<out>/<version>` for a static server that has `out` at `base`, and lists the
 * versions found in `out`: in its index, and on a page of each.
 * @param {{ site: string, out: string, version: string, base: string }} options
 * @returns {string} the index
 */
export function placeVersion({ site, out, version, base }) {
  const prefix = `/${base}/${version}`.replaceAll(/\/+/g, '/');
  const target = path.join(out, version);
  fs.rmSync(target, { recursive: true, force: true });
  fs.cpSync(site, target, { recursive: true });
  for (const name of filesIn(target).filter(isText)) {
    const file = path.join(target, name);
    fs.writeFileSync(file, placeAt(fs.readFileSync(file, 'utf8'), prefix));
  }
  const versions = fs
    .readdirSync(out)
    .filter((name) => /^\d+\.\d+\.\d+/.test(name))
    .sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
  /** @param {string} up */
  const page = (up) =>
    versionsPage(versions.map((one) => ({ version: one, href: `${up}${one}/index.html` })));
  for (const one of versions) fs.writeFileSync(path.join(out, one, 'versions.html'), page('../'));
  fs.writeFileSync(path.join(out, 'index.html'), page(''));
  return path.join(out, 'index.html');
}

/**
 * Returns a page that lists versions, the newest first.
 * @param {readonly { version: string, href: string }[]} versions
 */
export function versionsPage(versions) {
  const items = versions.map(({ version, href }) => `<li><a href="${href}">${version}</a></li>`);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Versions of the gateway</title>
<h1>Versions of the documentation</h1>
<p>A gateway serves the documentation of its own version at <code>/docs</code>.</p>
<ul>${items.join('')}</ul>
</html>
`;
}
