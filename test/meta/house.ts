import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export const root = fileURLToPath(new URL('../..', import.meta.url));

const made = new Set(['node_modules', 'dist', 'coverage', '.git', '.gateway', '.cache']);

/** A package of the workspace, in `packages/`, `plugins/` or `extras/`. */
export interface Workspace {
  /** Such as `agent` or `source-kafka`. */
  readonly name: string;
  readonly group: 'packages' | 'plugins' | 'extras';
  /** Relative to the root: `packages/agent`. */
  readonly folder: string;
  readonly manifest: Manifest;
}

export interface Manifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/**
 * The repository's files, relative to the root, with `/`: those that git tracks or would track,
 * else (without git) all except build output.
 */
export function files(): string[] {
  const git = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1e8,
  });
  const names = git.status === 0 && git.stdout ? git.stdout.split('\0').filter(Boolean) : walk('');
  return [...new Set(names)].filter((name) => fs.existsSync(path.join(root, name))).sort();
}

/** The TypeScript files of a folder: `sources('packages/agent/src')`. */
export function sources(folder: string): string[] {
  return files().filter((name) => name.startsWith(`${folder}/`) && /\.[cm]?tsx?$/.test(name));
}

export function read(name: string): string {
  return fs.readFileSync(path.join(root, name), 'utf8');
}

export function workspaces(): Workspace[] {
  return (['packages', 'plugins', 'extras'] as const).flatMap((group) =>
    fs
      .readdirSync(path.join(root, group))
      .filter((name) => fs.existsSync(path.join(root, group, name, 'package.json')))
      .map((name) => ({
        name,
        group,
        folder: `${group}/${name}`,
        manifest: manifest(`${group}/${name}/package.json`),
      })),
  );
}

export function manifest(name: string): Manifest {
  return JSON.parse(read(name)) as Manifest;
}

export function parse(name: string): ts.SourceFile {
  return ts.createSourceFile(name, read(name), ts.ScriptTarget.Latest, true);
}

/** Every node of a tree, parents first. */
export function* nodes(node: ts.Node): Generator<ts.Node> {
  yield node;
  for (const child of node.getChildren()) yield* nodes(child);
}

/** The specifiers of static and dynamic imports and re-exports of a file. */
export function imports(name: string): string[] {
  const found = ts.preProcessFile(read(name), true, true).importedFiles;
  return [...new Set(found.map(({ fileName }) => fileName))];
}

function walk(folder: string): string[] {
  return fs.readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = folder ? `${folder}/${entry.name}` : entry.name;
    if (made.has(entry.name)) return [];
    return entry.isDirectory() ? walk(name) : [name];
  });
}
