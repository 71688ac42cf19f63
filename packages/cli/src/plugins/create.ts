import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pluginApiPath } from './plugin-folder.js';
import { GatewayError } from '@gateway/core/errors';
import { fileReason } from '@gateway/core/errors';
import { isPluginName, KINDS } from '@gateway/core/plugins';
import { didYouMean } from '@gateway/core/errors';
import { packageJsonOf, readmeOf, type NewPlugin } from './new-package.js';

const TEMPLATES = fileURLToPath(new URL('../../templates', import.meta.url));

const PACKAGE_NAME = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;

/** What a person asks for. */
export interface CreateOptions {
  readonly kind: string;
  readonly name: string;
  readonly folder: string | undefined;
  readonly packageName: string | undefined;
}

/**
 * Writes the package of a new plugin.
 *
 * @returns the folder, the files in it, and the commands to type next
 * @throws GatewayError `wrong_use` for a kind or name that cannot be, and for a folder that holds something
 */
export function createPlugin(options: CreateOptions): { folder: string; files: string[]; next: string[] } {
  const plugin = checked(options);
  const shown = options.folder ?? `gateway-${plugin.kind}-${plugin.name}`;
  const folder = resolve(shown);
  if (existsSync(folder) && (!statSync(folder).isDirectory() || readdirSync(folder).length > 0)) {
    throw new GatewayError('wrong_use', { sentence: `${shown} holds something already`, fix: 'name another folder with --folder' });
  }
  const files = new Map([
    ['package.json', `${JSON.stringify(packageJsonOf(plugin, pluginApiPath()), null, 2)}\n`],
    ['README.md', readmeOf(plugin)],
    ...templateFiles('all'),
    ...templateFiles(plugin.kind),
  ]);
  try {
    for (const [file, text] of files) {
      const path = join(folder, file === 'gitignore' ? '.gitignore' : file);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text.replaceAll('__NAME__', plugin.name));
    }
  } catch (error) {
    throw new GatewayError('wrong_use', {
      sentence: `${shown} cannot be written: ${fileReason(error)}`,
      fix: 'name another folder with --folder, or give this user the right to write there',
    });
  }
  return {
    folder: shown,
    files: [...files.keys()],
    next: [`cd ${shown}`, 'npm install', 'npm run build', 'gateway plugins test .', 'gateway plugins link .'],
  };
}

function checked({ kind: given, name, packageName }: CreateOptions): NewPlugin {
  const kind = KINDS.find((it) => it === given);
  if (!kind) {
    throw new GatewayError('wrong_use', {
      sentence: `"${given}" is not a kind of plugin${didYouMean(given, KINDS)}`,
      fix: `give one of ${KINDS.join(', ')}`,
    });
  }
  if (!isPluginName(name)) {
    throw new GatewayError('wrong_use', {
      sentence: `"${name}" cannot be the name of a plugin`,
      fix: 'use lower-case letters, digits and dashes, and a letter first',
    });
  }
  if (packageName !== undefined && !PACKAGE_NAME.test(packageName)) {
    throw new GatewayError('wrong_use', {
      sentence: `"${packageName}" cannot be the name of a package`,
      fix: 'give --package a name that npm takes: lower-case letters, digits and dashes, perhaps after a scope, as in @acme/gateway-nats',
    });
  }
  return { kind, name, packageName: packageName ?? `gateway-${kind}-${name}` };
}

/** The files of a template by their path in it. */
function templateFiles(template: string): [file: string, text: string][] {
  const root = join(TEMPLATES, template);
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path.slice(root.length + 1).replaceAll('\\', '/'), readFileSync(path, 'utf8')]);
}
