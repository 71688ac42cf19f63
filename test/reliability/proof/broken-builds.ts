import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { discard, tempFolder } from '../../support/start/keep.js';

/** One text of a built file, and what stands there in a build that does not keep its promise. */
interface Patch {
  readonly file: string;
  readonly text: string;
  readonly instead: string;
}

const patches = {
  /** Tells the broker that a message is done when it is read. */
  'acknowledges-before-commit': {
    file: 'packages/agent/dist/commit/event-writer.js',
    text: 'this.#waiting.push(message);',
    instead: `message.settle('accepted'); this.#waiting.push(message);`,
  },
  /** Nobody takes the deliveries of agents that died. */
  'no-lease-sweep': {
    file: 'packages/store/dist/deliveries/claims.js',
    text: 'export async function recoverDeliveries(pool, { orphans }) {',
    instead: 'export async function recoverDeliveries() { return 0; } async function neverRecovers(pool, { orphans }) {',
  },
  /** Nobody routes the events whose signal was lost. */
  'no-reconciler': {
    file: 'packages/store/dist/events/events.js',
    text: 'export async function readStalePending(pool, olderThanMs, limit, withoutProjects = []) {',
    instead:
      'export async function readStalePending() { return []; } async function neverReads(pool, olderThanMs, limit, withoutProjects = []) {',
  },
} as const satisfies Readonly<Record<string, Patch>>;

export type Breakage = keyof typeof patches;

const root = fileURLToPath(new URL('../../..', import.meta.url));
const groups = ['packages', 'plugins'] as const;
/** What of a package is not run. */
const unused = new Set(['src', 'node_modules', 'tsconfig.json']);

/**
 * Copies the built gateway and breaks promises in the copy. Libraries are those of the repository; its own packages are those of the copy.
 * @returns the `gateway.js` of the copy, and what deletes it
 * @throws when the text to replace does not stand exactly once in its file: the code has changed, and the patch has to follow
 */
export function brokenBuild(breakages: readonly Breakage[]): { readonly bin: string; close(): void } {
  const folder = tempFolder('broken');
  for (const entry of ['bin', 'migrations', 'package.json'])
    fs.cpSync(path.join(root, entry), path.join(folder, entry), { recursive: true });
  for (const group of groups) {
    for (const workspace of fs.readdirSync(path.join(root, group)))
      copyPackage(path.join(root, group, workspace), path.join(folder, group, workspace));
  }
  linkLibraries(path.join(folder, 'node_modules'));
  for (const name of breakages) replaceOnce(folder, patches[name]);
  return { bin: path.join(folder, 'bin', 'gateway.js'), close: () => discard(folder) };
}

function copyPackage(from: string, to: string): void {
  fs.cpSync(from, to, { recursive: true, filter: (entry) => path.dirname(entry) !== from || !unused.has(path.basename(entry)) });
}

/** Links every library to that of the repository, and `@gateway/*` to where its link leads from here: into the copy. */
function linkLibraries(modules: string): void {
  const installed = path.join(root, 'node_modules');
  fs.mkdirSync(path.join(modules, '@gateway'), { recursive: true });
  for (const entry of fs.readdirSync(installed))
    if (entry !== '@gateway') fs.symlinkSync(path.join(installed, entry), path.join(modules, entry));
  for (const entry of fs.readdirSync(path.join(installed, '@gateway'))) {
    const target = path.relative(root, fs.realpathSync(path.join(installed, '@gateway', entry)));
    fs.symlinkSync(path.join('..', '..', target), path.join(modules, '@gateway', entry));
  }
}

function replaceOnce(folder: string, { file, text, instead }: Patch): void {
  const built = path.join(folder, file);
  const parts = fs.readFileSync(built, 'utf8').split(text);
  if (parts.length !== 2) throw new Error(`${file} has this ${parts.length - 1} times, not once: ${text}`);
  fs.writeFileSync(built, parts.join(instead));
}
