import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { discard, tempFolder } from '../../support/start/keep.js';

/** A text of a built file, and its replacement in another build. */
interface Patch {
  readonly file: string;
  readonly text: string;
  readonly instead: string;
}

const records = 'packages/server/dist/auth/record-cache.js';
const sealing = 'packages/core/dist/crypto/sealing.js';
/**
 * A future version: it writes KV values with other versions, cached keys in another shape and
 * sealed values in another format, and reads the current seals.
 */
const newer: readonly Patch[] = [
  {
    file: 'packages/store/dist/kv/versions.js',
    text: 'export const KV_VERSIONS = {',
    instead: `export const KV_VERSIONS = { breaker: 9, 'source-lag': 9, 'source-state': 9, signal: 9, record: 9 };
const replaced = {`,
  },
  {
    file: records,
    text: 'serialize({ name, untilMs, value })',
    instead: 'serialize({ name, untilMs, value: { moved: value } })',
  },
  { file: records, text: '? entry.value : undefined', instead: '? entry.value.moved : undefined' },
  { file: sealing, text: `const PREFIX = 'sealed:v2:';`, instead: `const PREFIX = 'sealed:v3:';` },
  { file: sealing, text: 'if (sealed.startsWith(PREFIX))', instead: 'if (isBound(sealed))' },
  {
    file: sealing,
    text: 'return text.startsWith(PREFIX);',
    instead: `return text.startsWith(PREFIX) || text.startsWith('sealed:v2:');`,
  },
];

const patches = {
  /** Acknowledges a message to the broker when it is read. */
  'acknowledges-before-commit': {
    file: 'packages/ingest/dist/commit/event-writer.js',
    text: 'this.#stage.push(message);',
    instead: `message.settle('accepted'); this.#stage.push(message);`,
  },
  /** Never recovers deliveries of dead agents. */
  'no-lease-sweep': {
    file: 'packages/store/dist/deliveries/claims.js',
    text: 'export async function recoverDeliveries(pool, { orphans }) {',
    instead:
      'export async function recoverDeliveries() { return 0; } async function neverRecovers(pool, { orphans }) {',
  },
  /** Never routes events with a lost signal. */
  'no-reconciler': {
    file: 'packages/store/dist/events/events.js',
    text: 'export async function readStalePending(pool, olderThanMs, limit, withoutProjects = []) {',
    instead:
      'export async function readStalePending() { return []; } async function neverReads(pool, olderThanMs, limit, withoutProjects = []) {',
  },
} as const satisfies Readonly<Record<string, Patch>>;

export type Breakage = keyof typeof patches;

const root = fileURLToPath(new URL('../../..', import.meta.url));
const groups = ['packages', 'plugins', 'extras'] as const;
/** Parts of a package that are not needed to run. */
const unused = new Set(['src', 'node_modules', 'tsconfig.json']);

export interface OtherBuild {
  readonly bin: string;
  /** The folder of its migrations. */
  readonly migrations: string;
  close(): void;
}

/**
 * Copies the built gateway and breaks guarantees in the copy. The copy uses the repository's
 * libraries and its copied packages.
 * @returns the copy's `gateway.js`, and a function that deletes the copy
 * @throws if the text to replace does not occur exactly once in its file: the code has changed, and
 * the patch must follow
 */
export function brokenBuild(breakages: readonly Breakage[]): OtherBuild {
  return patched(breakages.map((name) => patches[name]));
}

/** Copies the built gateway as a future version. Returns and throws as `brokenBuild`. */
export function newerBuild(): OtherBuild {
  return patched(newer);
}

function patched(all: readonly Patch[]): OtherBuild {
  const folder = tempFolder('broken');
  for (const entry of ['migrations', 'package.json'])
    fs.cpSync(path.join(root, entry), path.join(folder, entry), { recursive: true });
  for (const group of groups) {
    for (const workspace of fs.readdirSync(path.join(root, group)))
      copyPackage(path.join(root, group, workspace), path.join(folder, group, workspace));
  }
  linkLibraries(path.join(folder, 'node_modules'));
  for (const patch of all) replaceOnce(folder, patch);
  return {
    bin: path.join(folder, 'packages', 'cli', 'bin', 'gateway.js'),
    migrations: path.join(folder, 'migrations'),
    close: () => discard(folder),
  };
}

function copyPackage(from: string, to: string): void {
  fs.cpSync(from, to, {
    recursive: true,
    filter: (entry) => path.dirname(entry) !== from || !unused.has(path.basename(entry)),
  });
}

/** Links every library to the repository's, and `@gateway/*` to its counterpart in the copy. */
function linkLibraries(modules: string): void {
  const installed = path.join(root, 'node_modules');
  fs.mkdirSync(path.join(modules, '@gateway'), { recursive: true });
  for (const entry of fs.readdirSync(installed))
    if (entry !== '@gateway')
      fs.symlinkSync(path.join(installed, entry), path.join(modules, entry));
  for (const entry of fs.readdirSync(path.join(installed, '@gateway'))) {
    const target = path.relative(root, fs.realpathSync(path.join(installed, '@gateway', entry)));
    fs.symlinkSync(path.join('..', '..', target), path.join(modules, '@gateway', entry));
  }
}

function replaceOnce(folder: string, { file, text, instead }: Patch): void {
  const built = path.join(folder, file);
  const parts = fs.readFileSync(built, 'utf8').split(text);
  if (parts.length !== 2) throw new Error(notOnce(file, text, parts.length - 1));
  fs.writeFileSync(built, parts.join(instead));
}

/** Returns a sentence for each text to replace that does not occur exactly once in its file. */
export function outdatedPatches(): string[] {
  return [...newer, ...Object.values(patches)].flatMap(({ file, text }) => {
    const built = path.join(root, file);
    const times = fs.existsSync(built) ? fs.readFileSync(built, 'utf8').split(text).length - 1 : 0;
    return times === 1 ? [] : [notOnce(file, text, times)];
  });
}

function notOnce(file: string, text: string, times: number): string {
  return `${file} has this ${times} times, not once: ${text}`;
}
