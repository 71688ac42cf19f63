import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { API_VERSION } from '@gateway/plugin/manifest';

/** A plugin package to write: its `gateway` object and files by name. */
export interface PluginPackage {
  readonly gateway?: unknown;
  readonly keywords?: readonly string[];
  readonly files?: Readonly<Record<string, string>>;
}

/** A folder with packages in `node_modules`, listed in `package.json`. */
export interface Installation {
  readonly root: string;
  imported(): readonly string[];
  close(): void;
}

const seen = ((globalThis as { gatewayTestImports?: string[] }).gatewayTestImports ??= []);

/**
 * Writes an installation. Each package has an `index.js` that records its import and exports
 * `plugin` as default.
 *
 * @param unnamed packages in `node_modules` without a dependant
 */
export function installation(
  packages: Readonly<Record<string, PluginPackage>>,
  { unnamed = [] as readonly string[] } = {},
): Installation {
  const root = mkdtempSync(join(tmpdir(), 'gateway-plugins-'));
  const names = Object.keys(packages).filter((name) => !unnamed.includes(name));
  write(
    join(root, 'package.json'),
    JSON.stringify({
      name: 'installation',
      dependencies: Object.fromEntries(names.map((name) => [name, '*'])),
    }),
  );
  for (const [name, { gateway, keywords, files = {} }] of Object.entries(packages)) {
    const folder = join(root, 'node_modules', name);
    write(
      join(folder, 'package.json'),
      JSON.stringify({ name, version: '1.2.3', type: 'module', keywords, gateway }),
    );
    const all = {
      'plugin.js': 'export default {};',
      'index.js': noting(`${root}/${name}`),
      ...files,
    };
    for (const [file, text] of Object.entries(all)) write(join(folder, file), text);
  }
  return {
    root,
    imported: () => seen.filter((it) => it.startsWith(root)).map((it) => it.slice(root.length + 1)),
    close: () => rmSync(root, { recursive: true }),
  };
}

function noting(name: string): string {
  return `globalThis.gatewayTestImports.push(${JSON.stringify(name)});\nexport { default } from './plugin.js';\n`;
}

export function manifestOf(
  plugin: Readonly<Record<string, unknown>>,
  api = `^${API_VERSION}`,
): unknown {
  return { api, plugins: [{ module: './index.js', ...plugin }] };
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
