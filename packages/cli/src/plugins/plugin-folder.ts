import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GatewayError } from '@gateway/core/errors';
import { fileReason } from '@gateway/core/errors';
import { npm } from './npm.js';

const CONTRACT = '@gateway/plugin';
/** Where packages are kept that came from this machine. */
const KEPT = 'packages';
/** A kept package carries the beginning of its checksum, so that another content is another file. */
const CHECKSUM_CHARACTERS = 8;
const KEPT_FILE = new RegExp(`-[0-9a-f]{${CHECKSUM_CHARACTERS}}\\.tgz$`);

/** What `npm pack --json` tells of a package. */
interface Packed {
  readonly filename: string;
  readonly shasum: string;
}

interface FolderManifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/**
 * The folder of third-party plugins, `plugins.dir`: an npm package whose dependencies are the plugins. The contracts of this gateway are among them, so
 * that a plugin uses the very copy that the gateway does.
 */
export class PluginFolder {
  readonly path: string;

  constructor(dir: string) {
    this.path = resolve(dir);
  }

  /** What its `package.json` names, without the contracts. */
  packages(): string[] {
    return Object.keys(this.#dependencies()).filter((name) => name !== CONTRACT);
  }

  /**
   * Installs a package, making the folder when it is not there. Folders and tarballs of this machine are copied into it first, so that it stays whole when
   * they are gone; what was installed of the same name is replaced.
   *
   * @param spec what npm installs: `name@range`, a URL, or the absolute path of a folder or tarball
   * @param link use a folder as it is, by a link, in place of a copy
   * @returns the names of the packages that the spec means, and what brings back everything as it was before
   */
  async install(spec: string, { link = false, allowScripts = false } = {}): Promise<{ names: string[]; undo: () => Promise<void> }> {
    this.#make();
    const undo = this.#snapshot(allowScripts);
    const given = isAbsolute(spec) && !link ? await this.#keep(spec) : spec;
    const before = this.#dependencies();
    await npm(this.path, ['install', '--save', '--omit=dev', given], { allowScripts });
    // What was there already, the same range or the same folder, changes nothing in the manifest.
    const isGiven = (name: string, range: string) =>
      given === name ||
      given.startsWith(`${name}@`) ||
      given === range ||
      resolve(this.path, range.replace(/^file:/, '')) === resolve(this.path, given);
    const after = Object.entries(this.#dependencies()).filter(([name]) => name !== CONTRACT);
    return { names: after.filter(([name, range]) => before[name] !== range || isGiven(name, range)).map(([name]) => name), undo };
  }

  async uninstall(name: string): Promise<void> {
    await npm(this.path, ['uninstall', '--save', name]);
    this.sweep();
  }

  /** Removes the copies of packages that are not installed any more. */
  sweep(): void {
    const folder = join(this.path, KEPT);
    if (!existsSync(folder)) return;
    const ranges = Object.values(this.#dependencies());
    for (const file of readdirSync(folder)) {
      if (KEPT_FILE.test(file) && !ranges.includes(`file:${KEPT}/${file}`)) rmSync(join(folder, file));
    }
  }

  /** The manifest of one of its packages, undefined when it is not there. */
  packageJson(name: string): Readonly<Record<string, unknown>> | undefined {
    return readJson(join(this.path, 'node_modules', name, 'package.json'));
  }

  /** Packs a folder or tarball into this one. */
  async #keep(path: string): Promise<string> {
    const folder = join(this.path, KEPT);
    mkdirSync(folder, { recursive: true });
    const packed = await npm(this.path, ['pack', path, '--json', `--pack-destination=${folder}`]);
    const [{ filename, shasum }] = Object.values(JSON.parse(packed) as Packed[]) as [Packed];
    const file = filename.replace(/\.tgz$/, `-${shasum.slice(0, CHECKSUM_CHARACTERS)}.tgz`);
    renameSync(join(folder, filename), join(folder, file));
    return `./${KEPT}/${file}`;
  }

  #snapshot(allowScripts: boolean): () => Promise<void> {
    const files = ['package.json', 'package-lock.json'].map((name) => join(this.path, name));
    const texts = files.map((file) => (existsSync(file) ? readFileSync(file) : undefined));
    return async () => {
      for (const [i, file] of files.entries()) {
        const text = texts[i];
        if (text) writeFileSync(file, text);
        else rmSync(file, { force: true });
      }
      await npm(this.path, ['install', '--omit=dev'], { allowScripts });
    };
  }

  #dependencies(): Readonly<Record<string, string>> {
    return this.#manifest().dependencies ?? {};
  }

  #manifest(): FolderManifest {
    return readJson(join(this.path, 'package.json')) ?? {};
  }

  #make(): void {
    const { dependencies = {}, ...rest } = this.#manifest();
    const manifest = {
      name: 'gateway-plugins',
      private: true,
      description: 'Plugins of this gateway, kept by `gateway plugins install`.',
      ...rest,
      dependencies: { ...dependencies, [CONTRACT]: `file:${pluginApiPath()}` },
    };
    try {
      mkdirSync(this.path, { recursive: true });
      writeFileSync(join(this.path, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    } catch (cause) {
      throw new GatewayError('plugins_dir_unwritable', { path: this.path, reason: fileReason(cause) }, { cause });
    }
  }
}

function readJson(path: string): Record<string, unknown> | undefined {
  if (!existsSync(path)) return undefined;
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  } catch (cause) {
    throw new GatewayError('config_not_json', { path, reason: (cause as Error).message }, { cause });
  }
}

/** The folder of `@gateway/plugin` as this gateway uses it, for plugins that are installed elsewhere. */
export function pluginApiPath(): string {
  return dirname(dirname(fileURLToPath(import.meta.resolve('@gateway/plugin'))));
}
