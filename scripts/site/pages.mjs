// @ts-check
// Reads the pages of the docs site: which, in what order, and with which links.
import fs from 'node:fs';
import path from 'node:path';
import { BASE, OUTSIDE } from '@gateway/docs';

/** The map of the docs: its headings and links, in their order, are the navigation of the site. */
export const MAP = 'docs/README.md';

/** Fenced blocks and code spans. */
const CODE = /(^(?:```|~~~)[^]*?^(?:```|~~~)[ \t]*$|`[^`\n]*`)/m;

/**
 * @typedef {{ repository: string, scope: string }} Names
 * @typedef {{ text: string, link: string, file: string }} Entry `file`: path from the root
 * @typedef {{ text: string, items: Entry[] }} Group
 * @typedef {object} Page
 * @property {string} file path from the root: `docs/guides/kafka.md`
 * @property {string} name path on the site, without extension: `guides/kafka`
 * @property {string} title
 * @property {string} source for the generator: links lead to pages of the site
 * @property {string} markdown as published beside the page
 */

/**
 * Returns the groups of the navigation: a heading of the map with the files it links, each once.
 * @param {string} root
 * @returns {Group[]}
 */
export function navigation(root) {
  const seen = new Set();
  return read(root, MAP)
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      text: section.slice(0, section.indexOf('\n')).trim(),
      items: [...section.matchAll(/\[([^\]]+)\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].flatMap(
        ([, text = '', target = '']) => {
          const file = path.posix.join(path.posix.dirname(MAP), target);
          if (/^[a-z]+:/.test(target) || seen.has(file)) return [];
          seen.add(file);
          // Decisions are linked by number.
          return [
            {
              text: /^\d+$/.test(text) ? titleOf(read(root, file)) : text,
              link: placeOf(file),
              file,
            },
          ];
        },
      ),
    }));
}

/**
 * Returns the pages of the site, in the order of the navigation.
 * @param {{ root: string, version: string, names: Names }} options
 * @returns {Page[]}
 */
export function readPages({ root, version, names }) {
  const files = navigation(root).flatMap(({ items }) => items.map(({ file }) => file));
  const all = [...files.filter((file) => file.endsWith('.md')), MAP];
  const known = new Set([...all, ...files]);
  return all.map((file) => {
    const text = read(root, file).replaceAll(/(?<![\w.])@gateway(?=\/)/g, names.scope);
    /** @param {(target: string) => string} place */
    const linked = (place) =>
      inProse(text, (prose) =>
        prose.replaceAll(/(\]\(|\bsrc=")([^)"\s]+)/g, (whole, before, target) => {
          if (/^([a-z]+:|#|\/)/.test(target)) return whole;
          const [name = '', anchor] = target.split('#');
          const to = path.posix.join(path.posix.dirname(file), name);
          const end = anchor === undefined ? '' : `#${anchor}`;
          if (known.has(to) || to.startsWith('docs/images/')) return before + place(to) + end;
          const kind = to.endsWith('/') || !path.extname(to) ? 'tree' : 'blob';
          return `${before}${names.repository}/${kind}/v${version}/${to}${end}`;
        }),
      );
    return {
      file,
      name: nameOf(file),
      title: titleOf(text),
      source: linked(placeOf),
      markdown: linked((to) => `${BASE}/${to.endsWith('.md') ? `${nameOf(to)}.md` : inSite(to)}`),
    };
  });
}

/**
 * Returns `llms.txt`: the pages with their tasks, as https://llmstxt.org describes.
 * @param {string} root
 * @param {readonly Page[]} pages
 */
export function llmsIndex(root, pages) {
  const names = new Map(pages.map(({ file, name }) => [file, name]));
  const [, summary = ''] = /^# .*\n\n([^]*?)\n\n/.exec(read(root, 'README.md')) ?? [];
  const groups = navigation(root).map(({ text, items }) =>
    [
      `## ${text}\n`,
      ...items.map(
        ({ text, file }) =>
          `- [${text}](${BASE}/${names.has(file) ? `${names.get(file)}.md` : inSite(file)})`,
      ),
    ].join('\n'),
  );
  const all = `All pages in one file: [llms-full.txt](${BASE}/llms-full.txt)`;
  return [`# gateway\n\n> ${summary.replaceAll('\n', ' ')}\n\n${all}`, ...groups, ''].join('\n\n');
}

/**
 * Applies `change` to the text outside of code.
 * @param {string} text
 * @param {(prose: string) => string} change
 */
function inProse(text, change) {
  const parts = text.split(new RegExp(CODE, 'gm'));
  return parts.map((part, at) => (at % 2 === 0 ? change(part) : part)).join('');
}

/**
 * Returns the link to a file for the generator.
 * @param {string} file
 */
function placeOf(file) {
  if (file.endsWith('.md')) return `/${nameOf(file)}.md`;
  if (file.startsWith('docs/images/')) return `/${inSite(file)}`;
  return `${OUTSIDE}${BASE}/${inSite(file).replace(/openapi\.json$/, 'openapi.html')}`;
}

/** @param {string} file */
function nameOf(file) {
  if (file === 'README.md') return 'index';
  if (file === MAP) return 'contents';
  return inSite(file.replace(/^[A-Z]+(?=\.md$)/, (name) => name.toLowerCase())).slice(0, -3);
}

/** @param {string} file */
function inSite(file) {
  return file.replace(/^docs\//, '');
}

/** @param {string} text */
function titleOf(text) {
  return /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? '';
}

/**
 * @param {string} root
 * @param {string} file
 */
function read(root, file) {
  return fs.readFileSync(path.join(root, file), 'utf8');
}
