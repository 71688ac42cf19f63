import fs from 'node:fs';
import path from 'node:path';
import { API_VERSION } from '@gateway/plugin/manifest';
import { manifestOf } from '../../../core/plugin-packages.js';
import { tempFolder } from '../../../support/start/keep.js';

/**
 * Writes the folder of a plugin package without dependencies; its code throws when imported.
 *
 * @param plugin the manifest's plugin; undefined writes a package without a `gateway` object
 */
export function packageFolder(
  name: string,
  plugin: Readonly<Record<string, unknown>> | undefined,
  {
    api = `^${API_VERSION}`,
    files = {},
    version = '1.2.3',
  }: { api?: string; files?: Readonly<Record<string, string>>; version?: string } = {},
): string {
  const folder = path.join(tempFolder('plugin'), name);
  fs.mkdirSync(folder);
  const gateway = plugin && manifestOf(plugin, api);
  const all = {
    'package.json': JSON.stringify({ name, version, type: 'module', gateway }),
    'index.js': `throw new Error('imported');`,
    'connection.json': '{"type":"object"}',
    ...files,
  };
  for (const [file, text] of Object.entries(all)) fs.writeFileSync(path.join(folder, file), text);
  return folder;
}

/** The dependencies in the plugin folder's package.json, without the contracts. */
export function named(folder: string): string[] {
  const file = path.join(folder, 'gateway-plugins', 'package.json');
  if (!fs.existsSync(file)) return [];
  const { dependencies = {} } = JSON.parse(fs.readFileSync(file, 'utf8')) as {
    dependencies?: object;
  };
  return Object.keys(dependencies).filter((it) => it !== '@gateway/plugin');
}
