// @ts-check
// Generates the stages and the drawings of packages and folders in ARCHITECTURE.md from the imports
// of the sources. test/meta/boundaries checks the same graphs.
import fs from 'node:fs';
import path from 'node:path';
import { stages } from '#agent/model/stages';
import { stagePath } from './limits-page.mjs';
import { table, withBlock } from './markdown.mjs';

/** @typedef {Map<string, Set<string>>} Graph imports by node */

/**
 * Returns the imports between the packages of the workspace. All plugins are one node, `plugins/*`.
 * @param {string} root
 * @returns {Graph}
 */
export function packageGraph(root) {
  /** @type {Graph} */
  const graph = new Map();
  for (const { folder, name } of packagesOf(root)) {
    const node = folder.startsWith('plugins/') ? 'plugins/*' : name;
    for (const file of filesOf(path.join(root, folder, 'src')))
      for (const specifier of specifiersOf(file)) {
        const target = /^@gateway\/([^/]+)/.exec(specifier)?.[1];
        if (target && target !== name) edge(graph, node, target);
      }
    if (!graph.has(node)) graph.set(node, new Set());
  }
  return graph;
}

/**
 * Returns the imports between the folders of a package. Files at its root are the node `(root)`.
 * @param {string} src absolute
 * @returns {Graph}
 */
export function folderGraph(src) {
  /** @type {Graph} */
  const graph = new Map();
  /** @param {string} file */
  const folderOf = (file) => path.relative(src, file).split(path.sep).slice(0, -1)[0] ?? '(root)';
  for (const file of filesOf(src)) {
    const from = folderOf(file);
    if (!graph.has(from)) graph.set(from, new Set());
    for (const specifier of specifiersOf(file)) {
      if (!specifier.startsWith('.')) continue;
      const to = folderOf(path.resolve(path.dirname(file), specifier));
      if (to !== from) edge(graph, from, to);
    }
  }
  return graph;
}

/**
 * Returns `ARCHITECTURE.md` with its generated blocks replaced.
 * @param {string} root
 */
export function architecturePage(root) {
  const folders = packagesOf(root)
    .map(({ folder }) => ({ folder, graph: folderGraph(path.join(root, folder, 'src')) }))
    .filter(({ graph }) => graph.size > 2)
    .map(({ folder, graph }) => `${folder}\n${drawing(graph, '  ')}`);
  const blocks = {
    stages: stagesTable(),
    packages: asText(drawing(packageGraph(root))),
    folders: asText(folders.join('\n\n')),
  };
  const page = fs.readFileSync(path.join(root, 'ARCHITECTURE.md'), 'utf8');
  return Object.entries(blocks).reduce((made, [name, text]) => withBlock(made, name, text), page);
}

function stagesTable() {
  return table(
    [
      'Stage',
      'An item has passed when',
      'It may wait for',
      'If it has not passed when a drain ends, it',
    ],
    stages.map(({ part, file, until, waitsFor, left }) => [
      `[\`${part}\`](${stagePath(file)})`,
      until,
      waitsFor.join('; '),
      left,
    ]),
  );
}

/** @param {string} drawn */
function asText(drawn) {
  return `\`\`\`text\n${drawn}\n\`\`\``;
}

/**
 * Lists packages and plugins with sources; folders are relative to the root.
 * @param {string} root
 */
export function packagesOf(root) {
  return ['packages', 'plugins', 'extras'].flatMap((group) =>
    fs
      .readdirSync(path.join(root, group))
      .filter((name) => fs.existsSync(path.join(root, group, name, 'src')))
      .map((name) => ({ name, folder: `${group}/${name}` })),
  );
}

/**
 * Draws a line per node with its imports; a node precedes everything that it imports.
 * @param {Graph} graph
 */
function drawing(graph, indent = '') {
  /** @type {string[]} */
  const order = [];
  /** @param {string} node */
  const visit = (node) => {
    if (order.includes(node)) return;
    for (const next of [...(graph.get(node) ?? [])].sort()) visit(next);
    if (!order.includes(node)) order.push(node);
  };
  for (const node of [...graph.keys()].sort()) visit(node);
  const width = Math.max(...order.map((node) => node.length));
  return order
    .reverse()
    .map((node) => {
      const imported = [...(graph.get(node) ?? [])].sort().join(', ');
      return `${indent}${imported ? `${node.padEnd(width)}  → ${imported}` : node}`;
    })
    .join('\n');
}

/**
 * @param {Graph} graph
 * @param {string} from
 * @param {string} to
 */
function edge(graph, from, to) {
  graph.set(from, (graph.get(from) ?? new Set()).add(to));
}

/** @param {string} folder */
function filesOf(folder) {
  return fs
    .readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => path.join(folder, name));
}

/**
 * Returns static and dynamic imports and re-exports of a file.
 * @param {string} file
 */
function specifiersOf(file) {
  const text = fs.readFileSync(file, 'utf8');
  return [...text.matchAll(/(?:\bfrom |\bimport\(|^import )'([^']+)'/gm)].map(
    ([, specifier]) => specifier ?? '',
  );
}
