import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readConfig, type ConfigOptions } from '@gateway/core/config';
import { didYouMean, fileReason, GatewayError } from '@gateway/core/errors';
import { discover, importPlugin, isPluginPackage, whyInactive } from '@gateway/core/plugins';
import { installation, licenceOf, root } from '../app/installation.js';

interface InstallOptions {
  /**
   * Mistakes in the settings are ignored, because a plugin's settings can be written before it is
   * installed.
   */
  readonly settings: ConfigOptions;
  readonly allowScripts: boolean;
}

/**
 * The plugin folder depends on the gateway's copy, so that npm does not look for it in a registry.
 * At run time, plugins get that of the running gateway.
 */
const PLUGIN_API = '@gateway/plugin';

/**
 * Installs with npm into `plugins.dir`, reads the manifest, and imports the plugins that the
 * settings, feature flags and licence allow. Returns a line for each plugin. If one could never
 * become active (because of a missing or broken manifest, a missing module, another plugin's name or
 * setting, or another plugin API), restores the folder and throws.
 */
export function installPlugin(spec: string, options: InstallOptions): Promise<string[]> {
  const given = located(spec);
  return changed(
    ['install', '--save', '--install-links=false', given],
    options,
    (after, before) => {
      const names = Object.keys(after).filter((name) => before[name]?.range !== after[name]!.range);
      // A repeated installation with the same range changes nothing. The installed package is then
      // unknown, so all are examined.
      return names.length > 0 ? names : Object.keys(after);
    },
  );
}

/**
 * Updates to the newest version in the range with which the packages were installed: that of the
 * plugin or package with this name, or all. Returns a line for each plugin of those that changed,
 * and throws as `installPlugin` does.
 */
export function updatePlugins(
  name: string | undefined,
  options: InstallOptions,
): Promise<string[]> {
  const names = name === undefined ? [] : [packageOf(name, options.settings)];
  return changed(['update', ...names], options, (after, before) =>
    Object.keys(after).filter((it) => before[it]?.version !== after[it]!.version),
  );
}

/** By the name of the package or of a plugin. Returns the name of the package. */
export async function uninstallPlugin(name: string, settings: ConfigOptions): Promise<string> {
  const from = packageOf(name, settings);
  await npm(pluginsDir(settings), ['uninstall', from]);
  return from;
}

/** By its own name or by that of a plugin that it declares. */
function packageOf(name: string, settings: ConfigOptions): string {
  const dir = pluginsDir(settings);
  const packages = Object.keys(installedIn(dir));
  const { plugins, refused } = installation();
  const found = [...plugins, ...refused].find((it) => it.from === dir && it.name === name);
  const from = packages.find((it) => it === name) ?? found?.package;
  if (from !== undefined) return from;
  const known = packages.join(', ') || `none in ${dir}`;
  throw new GatewayError('plugin_unknown', { name, known, hint: didYouMean(name, packages) });
}

function pluginsDir(settings: ConfigOptions): string {
  return resolve(readConfig(settings).config.plugins.dir);
}

type Packages = Readonly<Record<string, { readonly range: string; readonly version: unknown }>>;

/**
 * Examines the packages that `select` names. Restores the folder if one of them can never become
 * active.
 */
async function changed(
  command: readonly string[],
  options: InstallOptions,
  select: (after: Packages, before: Packages) => readonly string[],
): Promise<string[]> {
  const { settings, allowScripts } = options;
  const dir = pluginsDir(settings);
  const scripts = allowScripts ? [] : ['--ignore-scripts'];
  addPluginApi(dir);
  const before = installedIn(dir);
  const files = ['package.json', 'package-lock.json'].map((name) => join(dir, name));
  const texts = files.map((file) => (existsSync(file) ? readFileSync(file) : undefined));
  await npm(dir, [...command, '--omit=dev'], scripts);
  try {
    const after = installedIn(dir);
    const ranges = select(after, before).map((name) => [name, after[name]!.range] as const);
    return await examined(dir, ranges, settings);
  } catch (error) {
    for (const [i, file] of files.entries()) {
      if (texts[i]) writeFileSync(file, texts[i]);
      else rmSync(file, { force: true });
    }
    await npm(dir, ['install', '--omit=dev'], scripts);
    throw error;
  }
}

/** Without the plugin API. */
function installedIn(dir: string): Packages {
  const ranges = Object.entries(dependenciesOf(dir)).filter(([name]) => name !== PLUGIN_API);
  return Object.fromEntries(
    ranges.map(([name, range]) => {
      const { version } = readJson(join(dir, 'node_modules', name, 'package.json'));
      return [name, { range, version }];
    }),
  );
}

/**
 * A line for each plugin, with a reason if it is inactive. Throws if one can never become active, or
 * prevents another plugin in the folder from becoming active.
 */
async function examined(
  dir: string,
  packages: readonly (readonly [name: string, range: string])[],
  settings: ConfigOptions,
): Promise<string[]> {
  const ranges = new Map(packages);
  for (const name of ranges.keys()) {
    if (isPluginPackage(readJson(join(dir, 'node_modules', name, 'package.json')))) continue;
    throw new GatewayError('not_a_plugin', {
      package: name,
      reason: 'its package.json has no `gateway` object',
    });
  }
  const after = discover({ root: root(), pluginsDir: dir });
  const known = installation().refused.map(({ error }) => error.message);
  const refused = after.refused.find(
    (it) => it.from === dir && (ranges.has(it.package) || !known.includes(it.error.message)),
  );
  if (refused) throw refused.error;

  const resolved = readConfig({ ...settings, rows: after.rows });
  const licence = licenceOf(resolved.config);
  const plugins = after.plugins.filter((it) => it.from === dir && ranges.has(it.package));
  const examining = plugins.map(async (plugin) => {
    const { kind, name: its, package: name, version, folder, manifest } = plugin;
    const closed = whyInactive(plugin, resolved, licence);
    if (closed && ['plugin_api', 'plugin_manifest_broken'].includes(closed.code)) throw closed;
    // A linked folder can be built later, so its module may be missing.
    const isLink = /^file:.*(?<!gz)$/.test(ranges.get(name)!);
    if (!isLink && !existsSync(join(folder, manifest.module))) {
      const reason = `it names the module ${manifest.module}, which is not in the package; was it built before packing?`;
      throw new GatewayError('plugin_manifest_broken', { package: name, reason });
    }
    const failed = (error: GatewayError) => error;
    const inactive = closed ?? (await importPlugin(plugin).then(() => undefined, failed));
    const ready = kind === 'source' ? `ready for sources of the type ${its}` : 'active';
    const state = inactive ? `inactive because ${inactive.message}; ${inactive.fix}` : ready;
    return `the ${kind} plugin ${its} (${name} ${version}): ${state}`;
  });
  return Promise.all(examining);
}

/**
 * npm runs in another folder, so the path of a folder or tarball becomes absolute. Other specifiers
 * are returned unchanged. Throws `not_a_plugin` if the path does not exist.
 */
function located(spec: string): string {
  const path = resolve(spec.replace(/^file:/, ''));
  const isPath =
    /^(?:file:|\.{0,2}[/\\]|\.{1,2}$|[A-Za-z]:\\)/.test(spec) ||
    (/[/\\]|\.t(?:ar\.)?gz$/.test(spec) && existsSync(path));
  if (!isPath) return spec;
  const needed =
    existsSync(path) && statSync(path).isDirectory() ? join(path, 'package.json') : path;
  if (existsSync(needed)) return path;
  throw new GatewayError('not_a_plugin', { package: spec, reason: `there is no ${needed}` });
}

/** This gateway's copy of a package. */
export function packageFolder(name: string): string {
  return dirname(dirname(fileURLToPath(import.meta.resolve(name))));
}

/** Adds a dependency on this plugin API. Throws `plugins_dir_unwritable`. */
function addPluginApi(dir: string): void {
  const file = join(dir, 'package.json');
  const manifest = {
    name: 'gateway-plugins',
    private: true,
    description: 'Plugins of this gateway, managed by `gateway plugins install`.',
    ...readJson(file),
    dependencies: { ...dependenciesOf(dir), [PLUGIN_API]: `file:${packageFolder(PLUGIN_API)}` },
  };
  try {
    mkdirSync(dir, { recursive: true });
    writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
  } catch (cause) {
    throw new GatewayError(
      'plugins_dir_unwritable',
      { path: dir, reason: fileReason(cause) },
      { cause },
    );
  }
}

function dependenciesOf(dir: string): Readonly<Record<string, string>> {
  return (readJson(join(dir, 'package.json'))['dependencies'] ?? {}) as Record<string, string>;
}

function readJson(path: string): Readonly<Record<string, unknown>> {
  if (!existsSync(path)) return {};
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  } catch (cause) {
    throw new GatewayError(
      'config_not_json',
      { path, reason: (cause as Error).message },
      { cause },
    );
  }
}

/** By default without the install scripts of packages. */
async function npm(
  folder: string,
  args: readonly string[],
  scripts: readonly string[] = ['--ignore-scripts'],
): Promise<void> {
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error', ...scripts];
  try {
    // On Windows, npm is a batch file, which only a shell can run.
    await promisify(execFile)('npm', [...args, ...quiet], {
      cwd: folder,
      shell: process.platform === 'win32',
    });
  } catch (cause) {
    const { code, message, stderr = '' } = cause as NodeJS.ErrnoException & { stderr?: string };
    if (code === 'ENOENT') throw new GatewayError('npm_missing', { reason: message }, { cause });
    // The first two lines of npm's output, without codes and the name of the log file.
    const lines = stderr
      .split('\n')
      .map((line) => line.replace(/^npm (?:error|ERR!) ?(?:[A-Z]?\d{3} )?/i, '').trim());
    const told = lines.filter(
      (line) =>
        line !== '' &&
        !/^(?:code |errno |syscall |path |npm warn |A complete log of this run)/i.test(line),
    );
    const reason = told.slice(0, 2).join(' ') || 'npm gives no reason';
    throw new GatewayError('npm_failed', { command: `npm ${args.join(' ')}`, folder, reason });
  }
}
