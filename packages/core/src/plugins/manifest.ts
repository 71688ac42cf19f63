import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { isAbsolute, join, relative, sep } from 'node:path';
import satisfies from 'semver/functions/satisfies.js';
import {
  API_VERSION,
  type PackageManifest,
  type PluginKind,
  type PluginManifest,
} from '@gateway/plugin/manifest';
import { isObject } from '../json/json-value.js';
import { formats } from '../config/parse-value.js';
import type { FeatureFlag, FlagTable, Setting, SettingsTable } from '../config/settings.js';
import { didYouMean } from '../errors/suggest.js';

export { API_VERSION, type PluginKind, type PluginManifest };

export type PackageJson = Readonly<Record<string, unknown>>;

/** Described by its package, whose code is not imported. */
export interface InstalledPlugin {
  readonly kind: PluginKind;
  readonly name: string;
  /** Semver range. */
  readonly api: string;
  readonly manifest: PluginManifest;
  readonly package: string;
  readonly version: string;
  /** `the installation`, or the path of the plugin folder. */
  readonly from: string;
  readonly folder: string;
  /** All below `home`. */
  readonly rows: SettingsTable;
  /** `tracer.<name>`, `metrics.<name>_metrics`, `source.<name>` or `codec.<name>`. */
  readonly home: string;
  readonly flags: FlagTable;
  /** JSON Schema. Only for sources and codecs. */
  readonly connectionSchema?: Readonly<Record<string, unknown>>;
}

/** Built-in plugins are tested with the gateway. */
export function isOurs({ package: from }: Pick<InstalledPlugin, 'package'>): boolean {
  return from.startsWith('@gateway/');
}

/** The message is the reason. */
export class BrokenManifest extends Error {}

const SOURCE_KINDS: readonly unknown[] = ['pull', 'push', undefined];
export const KINDS: readonly PluginKind[] = ['source', 'codec', 'tracer', 'metrics'];
const TYPES: readonly Setting['type'][] = ['integer', 'number', 'boolean', 'string', 'list'];
const NAME = /^[a-z][a-z0-9-]*$/;
const PACKAGE_FIELDS: readonly (keyof PackageManifest)[] = ['api', 'plugins'];
const TEXT_FIELDS = [
  'settings',
  'connection',
  'featureFlag',
  'entitlement',
  'conformance',
] as const satisfies (keyof PluginManifest)[];
const FILE_FIELDS = [
  'module',
  'settings',
  'connection',
  'conformance',
] as const satisfies (keyof PluginManifest)[];
const MANIFEST_FIELDS: readonly (keyof PluginManifest)[] = [
  'kind',
  'sourceKind',
  'name',
  'module',
  'flags',
  ...TEXT_FIELDS,
];
const FLAG_FIELDS: readonly (keyof FeatureFlag)[] = ['summary', 'stability'];
const ROW_FIELDS = [
  'type',
  'default',
  'env',
  'flag',
  'also',
  'options',
  'min',
  'max',
  'format',
  'secret',
  'summary',
  'required',
];

export function isPluginName(name: string): boolean {
  return NAME.test(name);
}

/** It has a `gateway` object or the keyword `gateway-plugin`. */
export function isPluginPackage(json: PackageJson): boolean {
  const keywords = json['keywords'];
  return (
    json['gateway'] !== undefined ||
    (Array.isArray(keywords) && keywords.includes('gateway-plugin'))
  );
}

/** Empty if there is none. */
export function versionOf(json: PackageJson): string {
  return typeof json['version'] === 'string' ? json['version'] : '';
}

function homeOf(kind: PluginKind, name: string): string {
  return kind === 'metrics' ? `metrics.${name}_metrics` : `${kind}.${name}`;
}

/** @throws BrokenManifest */
export function readPlugins(folder: string, json: PackageJson, from: string): InstalledPlugin[] {
  const gateway = object(json['gateway'], 'gateway');
  const api = text(gateway['api'], 'gateway.api');
  const plugins = gateway['plugins'];
  if (!Array.isArray(plugins) || plugins.length === 0)
    throw new BrokenManifest('gateway.plugins must be a list with at least one plugin');
  const common = { api, package: String(json['name']), version: versionOf(json), from, folder };
  // A plugin for another API version may have other fields, and its range excludes it anyway. In
  // this version, an unknown field is a mistake: a misspelt `featureflag` would leave the plugin
  // without its feature flag.
  const isOurs = satisfies(API_VERSION, api);
  if (isOurs) refuseUnknown(gateway, PACKAGE_FIELDS, 'gateway', 'manifests');
  return plugins.map((value: unknown, i) => {
    const at = `gateway.plugins[${i}]`;
    const entry = object(value, at);
    if (isOurs) refuseUnknown(entry, MANIFEST_FIELDS, at, 'manifests');
    return readPlugin(entry, at, common);
  });
}

type OfPackage = Pick<InstalledPlugin, 'api' | 'package' | 'version' | 'from' | 'folder'>;

function readPlugin(manifest: PackageJson, at: string, common: OfPackage): InstalledPlugin {
  requireManifest(manifest, at, common.folder);
  const { kind, name } = manifest;
  const home = homeOf(kind, name);
  const owner = `the ${kind} plugin ${name}`;
  const rows = manifest.settings
    ? rowsOf(readJson(common.folder, manifest.settings), manifest.settings, home, owner)
    : {};
  const flags =
    manifest.flags === undefined
      ? {}
      : flagsOf(object(manifest.flags, `${at}.flags`), `${at}.flags`, common.package);
  const connection = manifest.connection
    ? { connectionSchema: readJson(common.folder, manifest.connection) }
    : {};
  return { ...common, kind, name, manifest, rows, home, flags, ...connection };
}

function requireManifest(
  entry: PackageJson,
  at: string,
  folder: string,
): asserts entry is PackageJson & PluginManifest {
  const { kind, name } = entry;
  if (!KINDS.some((known) => known === kind))
    throw new BrokenManifest(`${at}.kind must be one of ${KINDS.join(', ')}`);
  if (!SOURCE_KINDS.includes(entry['sourceKind']))
    throw new BrokenManifest(`${at}.sourceKind must be pull or push`);
  if (!isPluginName(text(name, `${at}.name`)))
    throw new BrokenManifest(`${at}.name must be lower-case letters, digits and dashes`);
  text(entry['module'], `${at}.module`);
  for (const field of TEXT_FIELDS)
    if (entry[field] !== undefined) text(entry[field], `${at}.${field}`);
  for (const field of FILE_FIELDS)
    requireInside(folder, entry[field] as string | undefined, `${at}.${field}`);
  if ((kind === 'source' || kind === 'codec') && !entry['connection'])
    throw new BrokenManifest(
      `${at}.connection must name the JSON Schema of the ${kind === 'source' ? 'connection' : 'settings of the codec'}`,
    );
}

function rowsOf(json: PackageJson, file: string, home: string, owner: string): SettingsTable {
  const rows: Record<string, Setting> = {};
  for (const [key, value] of Object.entries(json)) {
    const at = `${file}: ${key}`;
    if (!key.startsWith(`${home}.`)) throw new BrokenManifest(`${at} must be below ${home}`);
    const row = object(value, at);
    requireRow(row, at, home.split('.', 1)[0]!);
    rows[key] = { ...row, owner };
  }
  return rows;
}

function requireRow(
  row: PackageJson,
  at: string,
  group: string,
): asserts row is PackageJson & Setting {
  refuseUnknown(row, ROW_FIELDS, at, 'settings');
  if (!TYPES.some((type) => type === row['type']))
    throw new BrokenManifest(`${at} must have one of the types ${TYPES.join(', ')}`);
  if (
    row['format'] !== undefined &&
    !Object.keys(formats).some((format) => format === row['format'])
  )
    throw new BrokenManifest(
      `${at} must have one of the formats ${Object.keys(formats).join(', ')}`,
    );
  text(row['summary'], `${at}.summary`);
  const { also = [] } = row;
  if (!Array.isArray(also) || !also.every((it) => String(it).startsWith(`${group}.`)))
    throw new BrokenManifest(`${at}.also must be a list of keys below ${group}`);
}

function flagsOf(json: PackageJson, at: string, declaredBy: string): FlagTable {
  const flags: Record<string, FeatureFlag> = {};
  for (const [name, value] of Object.entries(json)) {
    const flag = object(value, `${at}.${name}`);
    refuseUnknown(flag, FLAG_FIELDS, `${at}.${name}`, 'flags');
    const { summary, stability } = flag;
    if (stability !== 'experimental' && stability !== 'beta' && stability !== 'stable') {
      throw new BrokenManifest(`${at}.${name}.stability must be experimental, beta or stable`);
    }
    flags[name] = { summary: text(summary, `${at}.${name}.summary`), stability, declaredBy };
  }
  return flags;
}

function refuseUnknown(
  json: PackageJson,
  fields: readonly string[],
  at: string,
  owners: string,
): void {
  const unknown = Object.keys(json).find((field) => !fields.includes(field));
  if (unknown === undefined) return;
  throw new BrokenManifest(
    `${at} has the field ${unknown}, which ${owners} do not have${didYouMean(unknown, fields)}`,
  );
}

/**
 * A path can leave the package directly or through a symbolic link. A missing file is reported only
 * when it is read.
 */
function requireInside(folder: string, file: string | undefined, at: string): void {
  if (file === undefined) return;
  const path = join(folder, file);
  const leaves = (from: string, to: string) => relative(from, to).split(sep, 1)[0] === '..';
  const isLinkedOut = () => existsSync(path) && leaves(realpathSync(folder), realpathSync(path));
  if (!isAbsolute(file) && !leaves(folder, path) && !isLinkedOut()) return;
  throw new BrokenManifest(
    `${at} names ${file}, which is outside the package; a plugin may name only files of its own package`,
  );
}

function readJson(folder: string, file: string): PackageJson {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  } catch (error) {
    throw new BrokenManifest(`${file} cannot be read: ${(error as Error).message}`);
  }
  return object(json, file);
}

function object(value: unknown, at: string): PackageJson {
  if (!isObject(value)) throw new BrokenManifest(`${at} must be an object`);
  return value;
}

function text(value: unknown, at: string): string {
  if (typeof value !== 'string' || value === '')
    throw new BrokenManifest(`${at} must be a non-empty string`);
  return value;
}
