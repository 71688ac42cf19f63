import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { didYouMean, fileReason } from '@gateway/core/errors';
import { missingExtra, VERSION } from '@gateway/core/process';
import { API_VERSION, isPluginName, KINDS } from '@gateway/core/plugins';
import { packageFolder } from './install.js';
import { wrongUse } from '../app/flag-values.js';

const KIT = '@gateway/plugin-conformance';

/** npm would interpret template files with these names, so the templates have others. */
const REAL_NAMES: Readonly<Record<string, string>> = {
  gitignore: '.gitignore',
  'manifest.json': 'package.json',
};

const PACKAGE_NAME = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;

/**
 * Throws `wrong_use` for an invalid kind or name, and for a folder that is not empty; a package
 * that cannot be written whole is removed. Throws `package_missing` without the kit.
 * @returns `api`: folders of this gateway's packages that the plugin builds against
 */
export function createPlugin(
  kind: string,
  name: string,
  shown = `gateway-${kind}-${name}`,
  packageName = `gateway-${kind}-${name}`,
): { folder: string; files: number; api: readonly string[] } {
  if (kind === 'tracer' || kind === 'metrics')
    throw wrongUse(
      `there is no template of a ${kind} plugin`,
      'copy the package @gateway/tracer-errtrack or @gateway/metrics-pullmetrics, which are small, and change it',
    );
  if (kind !== 'source')
    throw wrongUse(
      `"${kind}" is not a kind of plugin${didYouMean(kind, KINDS)}`,
      'give source, the kind that has a template',
    );
  if (!isPluginName(name))
    throw wrongUse(
      `"${name}" is not a valid plugin name`,
      'use lower-case letters, digits and dashes, beginning with a letter',
    );
  if (!PACKAGE_NAME.test(packageName))
    throw wrongUse(
      `"${packageName}" is not a valid package name`,
      'set --package to a valid npm name: lower-case letters, digits and dashes, optionally with a scope, as in @acme/gateway-nats',
    );
  const folder = resolve(shown);
  if (existsSync(folder) && (!statSync(folder).isDirectory() || readdirSync(folder).length > 0))
    throw wrongUse(`${shown} is not empty`, 'name another folder with --folder');
  const values: Readonly<Record<string, string>> = {
    __NAME__: name,
    __PACKAGE__: packageName,
    __API_VERSION__: API_VERSION,
    __VERSION__: VERSION,
  };
  const missing = missingExtra(KIT, 'gateway plugins create');
  if (missing) throw missing;
  const files = filesIn(join(packageFolder(KIT), 'templates', kind));
  let made: string | undefined;
  try {
    made = mkdirSync(folder, { recursive: true });
    for (const [file, template] of files) {
      const path = join(folder, REAL_NAMES[file] ?? file);
      const text = template.replaceAll(/__[A-Z_]+?__/g, (key) => values[key] ?? key);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
  } catch (error) {
    const written = made ? [made] : existsSync(folder) ? readdirSync(folder) : [];
    for (const it of written) rmSync(resolve(folder, it), { recursive: true, force: true });
    throw wrongUse(
      `${shown} cannot be written: ${fileReason(error)}`,
      'name another folder with --folder, or give this user write permission there',
    );
  }
  return {
    folder: shown,
    files: files.length,
    api: ['@gateway/plugin', KIT].map(packageFolder),
  };
}

function filesIn(template: string): [file: string, text: string][] {
  return readdirSync(template, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [relative(template, path), readFileSync(path, 'utf8')]);
}
