import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { connectionChecks } from './cross-checks.js';
import type { Problem } from '../errors/error-row.js';
import { GatewayError } from '../errors/errors.js';
import { fileReason } from '../errors/connection-errors.js';
import { jsonMistake } from '../json/json-mistake.js';
import { repeatedMembers } from '../json/json-members.js';
import { isObject } from '../json/json-value.js';
import { parseSetting } from './parse-value.js';
import { MASK, maskAddress } from '../logging/redaction.js';
import {
  envOf,
  flagsOf,
  keysOf,
  settingAt,
  settings,
  type Config,
  type Setting,
  type SettingsTable,
} from './settings.js';
import { didYouMean } from '../errors/suggest.js';

const DEFAULT_FILE = './gateway.json';

/** Flag values by name. */
export type FlagValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface ConfigOptions {
  /** Decides which setting a flag sets: `server` and `agent` each have a `--port`. */
  readonly command?: string;
  readonly flags?: FlagValues;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** A path or the content; by default `./gateway.json` if it exists. */
  readonly file?: string | Readonly<Record<string, unknown>> | undefined;
  readonly rows?: SettingsTable;
}

export interface Resolved {
  readonly config: Config;
  /**
   * The origin by key: a flag (`--port`), a variable (`AGENT_PORT`), the file (`./gateway.json`) or
   * `default`.
   */
  readonly origins: ReadonlyMap<string, string>;
  /** Mistakes in plugin settings. They only keep the plugin inactive. */
  readonly pluginProblems: readonly Problem[];
  readonly warnings: readonly Problem[];
  readonly rows: SettingsTable;
}

export interface FoundProblem extends Problem {
  /** The keys in the file that the sentence is about, if not `key` alone. */
  readonly places?: readonly string[];
  readonly from: 'flag' | 'env' | 'file';
}

export interface ReadConfig extends Resolved {
  /** All mistakes. A wrong setting has its default in `config`. */
  readonly problems: readonly FoundProblem[];
  readonly withdrawn: readonly (Problem & { readonly form: string; readonly instead: string })[];
  /** Absent if there is no file or its content was passed. */
  readonly file?: { readonly path: string; readonly text: string };
}

interface Given {
  readonly value: unknown;
  readonly origin: string;
  readonly from: FoundProblem['from'];
  readonly place: string;
}

/**
 * Resolves the settings. Precedence: flags, environment variables, file, defaults.
 * @throws GatewayError `withdrawn`, `config_unreadable`, `config_not_json`; `invalid_settings` with
 *   all mistakes, or `wrong_flags` if all are in flags
 */
export function resolveConfig(options: ConfigOptions = {}): Resolved {
  const { problems, withdrawn, ...resolved } = readConfig(options);
  const { config, origins, rows } = resolved;
  if (withdrawn[0]) throw new GatewayError('withdrawn', withdrawn[0]);
  const fatal: Problem[] = problems.filter(({ key }) => rows[key]?.owner === undefined);
  if (fatal.length === 0) fatal.push(...connectionChecks(config, origins));
  if (fatal.length === 0) return resolved;
  throw new GatewayError(
    fatal.every(({ origin }) => origin.startsWith('--')) ? 'wrong_flags' : 'invalid_settings',
    { problems: fatal },
  );
}

/**
 * Like `resolveConfig`, but returns the mistakes.
 * @throws GatewayError `config_unreadable`, `config_not_json`
 */
export function readConfig(options: ConfigOptions = {}): ReadConfig {
  const { command = '', flags = {}, env = process.env } = options;
  const rows: SettingsTable = options.rows ?? settings;
  const { origin, content, text } = readFile(options.file);
  const problems: FoundProblem[] = [];
  const withdrawn: ReadConfig['withdrawn'][number][] = [];
  const fromFile = flatten(content, rows, (key, wrong, hint = '') =>
    problems.push({
      key,
      origin,
      sentence: `${key} ${wrong} (from ${origin})${hint}`,
      from: 'file',
    }),
  );
  for (const { path: key, lines } of repeatedMembers(text ?? '{}')) {
    problems.push({
      key,
      origin,
      sentence: `${key} is given twice, in the lines ${lines.join(' and ')} (from ${origin})`,
      from: 'file',
    });
  }
  const given = (key: string, row: Setting): readonly Given[] => {
    const above = flagValue(key, row, command, flags) ?? envValue(key, row, env);
    if (above) return [above];
    const places = keysOf(key, row).filter((place) => fromFile.has(place));
    return places.map((place) => ({ value: fromFile.get(place), origin, from: 'file', place }));
  };

  const values = new Map<string, unknown>();
  const origins = new Map<string, string>();
  for (const [key, row] of Object.entries(rows)) {
    const [it, ...more] = given(key, row);
    if (row.withdrawn !== undefined) {
      const form =
        it?.from === 'file'
          ? `${key} in ${origin}`
          : `${it?.origin}=${maskAddress(String(it?.value))}`;
      const instead = row.withdrawn;
      if (it)
        withdrawn.push({
          key,
          origin: it.origin,
          form,
          instead,
          sentence: `${form} is no longer valid: ${instead}`,
        });
      continue;
    }
    values.set(key, row.default);
    origins.set(key, 'default');
    if (!it) continue;
    const value = agreed([it, ...more], row, () => partsOf(key, rows));
    if ('sentence' in value) {
      problems.push({ key, origin: it.origin, from: it.from, ...value });
      continue;
    }
    values.set(key, value.value);
    origins.set(key, it.origin);
  }

  enableMetricsByFlag(values, origins);
  const pluginProblems = problems.filter(({ key }) => rows[key]?.owner !== undefined);
  const warnings = serviceLinks(rows, env);
  const config = nest(values) as unknown as Config;
  return {
    config,
    origins,
    pluginProblems,
    warnings,
    rows,
    problems,
    withdrawn,
    ...(text === undefined ? {} : { file: { path: origin, text } }),
  };
}

function agreed(
  all: readonly Given[],
  row: Setting,
  parts: () => string,
): { value: unknown } | Pick<FoundProblem, 'sentence' | 'places'> {
  let first: { readonly place: string; readonly value: unknown } | undefined;
  for (const { place, value: given, origin, from } of all) {
    const parsed = parseSetting(row, given, from !== 'file');
    if ('wrong' in parsed) {
      const hint =
        parsed.hint ??
        (row.format === 'login' || (row.format === 'host' && String(given).includes('://'))
          ? parts()
          : '');
      return { places: [place], sentence: `${place} ${parsed.wrong} (from ${origin})${hint}` };
    }
    first ??= { place, value: parsed.value };
    if (isDeepStrictEqual(first.value, parsed.value)) continue;
    const both = `${first.place} (from ${origin}) and ${place} (from ${origin})`;
    return {
      places: [first.place, place],
      sentence: `${both} are the same setting and have different values; remove one of them`,
    };
  }
  return { value: first?.value };
}

/** Lists the settings for the parts of a URL that was given for the host at `key`. */
function partsOf(key: string, rows: SettingsTable): string {
  const group = key.slice(0, key.lastIndexOf('.') + 1);
  const names = ['scheme', 'username', 'password', 'host', 'port', 'database', 'options'];
  const parts = group === '' ? [] : names.map((name) => group + name).filter((it) => it in rows);
  return parts.length === 0 ? '' : `; give its parts with ${parts.join(', ')}`;
}

/** Returns the plugin folder, needed before the settings table is complete. Reports no mistakes. */
export function pluginsDirOf({
  env = process.env,
  file,
}: Pick<ConfigOptions, 'env' | 'file'> = {}): string {
  const row = settings['plugins.dir'];
  try {
    const fromFile = flatten(readFile(file).content, settings, () => undefined).get('plugins.dir');
    const dir = envValue('plugins.dir', row, env)?.value ?? fromFile;
    return typeof dir === 'string' ? dir : row.default;
  } catch {
    return row.default;
  }
}

/** Returns the user's editor as a shell command, if the environment names one. */
export function editorCommand(
  { VISUAL: visual, EDITOR: editor }: NonNullable<ConfigOptions['env']> = process.env,
): string | undefined {
  return visual?.trim() || editor?.trim() || undefined;
}

export function settingsAt(config: Config, key: string): Readonly<Record<string, unknown>> {
  return (settingAt(config, key) as Record<string, unknown> | undefined) ?? {};
}

/** Returns the settings as `gateway config` prints them. */
export function presentConfig(
  { config, rows }: Resolved,
  { showSecrets = false } = {},
): Record<string, unknown> {
  const shown = Object.entries(rows).filter(([, row]) => row.withdrawn === undefined);
  return nest(
    new Map(shown.map(([key, row]) => [key, presented(row, settingAt(config, key), showSecrets)])),
  );
}

/** Returns the value and origin of each setting. */
export function presentOrigins({ config, origins, rows }: Resolved, { showSecrets = false } = {}) {
  const line = (key: string, origin: string) => ({
    value: presented(rows[key]!, settingAt(config, key), showSecrets) ?? null,
    origin,
  });
  return Object.fromEntries(Array.from(origins, ([key, origin]) => [key, line(key, origin)]));
}

function presented(row: Setting, value: unknown, showSecrets: boolean): unknown {
  if (showSecrets || value === undefined || (Array.isArray(value) && value.length === 0))
    return value;
  if (row.secret) return MASK;
  return typeof value === 'string' ? maskAddress(value) : value;
}

/** A backend set in the file or the environment does not enable metrics. */
function enableMetricsByFlag(values: Map<string, unknown>, origins: Map<string, string>): void {
  if (
    origins.get('metrics.enabled') !== 'default' ||
    origins.get('metrics.metrics_backend') !== '--metrics-backend'
  )
    return;
  values.set('metrics.enabled', true);
  origins.set('metrics.enabled', '--metrics-backend');
}

function flagValue(
  key: string,
  row: Setting,
  command: string,
  flags: FlagValues,
): Given | undefined {
  for (const flag of flagsOf(row, command)) {
    const value = flags[flag];
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    if (row.flagUnset === 'negative' && Number(value) < 0) continue;
    if (row.flagUnset === 'zero' && value !== '' && Number(value) === 0) continue;
    return { value, origin: `--${flag}`, from: 'flag', place: key };
  }
  return undefined;
}

/** An empty variable counts as unset, because container files pass unset variables that way. */
function envValue(
  key: string,
  row: Setting,
  env: NonNullable<ConfigOptions['env']>,
): Given | undefined {
  const name = envOf(key, row);
  const value = env[name];
  return value && !isServiceLink(name, value)
    ? { value, origin: name, from: 'env', place: key }
    : undefined;
}

/**
 * Kubernetes sets Docker links for services:
 * https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
function isServiceLink(name: string, value: string): boolean {
  return name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\/\S+:\d+$/.test(value.trim());
}

function serviceLinks(rows: SettingsTable, env: NonNullable<ConfigOptions['env']>): Problem[] {
  return Object.entries(rows).flatMap(([key, row]) => {
    const name = envOf(key, row);
    const value = env[name] ?? '';
    if (!isServiceLink(name, value)) return [];
    const service = name.slice(0, -'_PORT'.length).toLowerCase().replaceAll('_', '-');
    const sentence = `${name}=${value} is ignored: Kubernetes makes it for the service ${service}; set enableServiceLinks to false in the pod, and ${name} to a number if you mean the setting ${key}`;
    return { key, origin: name, sentence };
  });
}

function readFile(file: ConfigOptions['file']): {
  origin: string;
  content: Readonly<Record<string, unknown>>;
  text?: string;
} {
  if (typeof file === 'object') return { origin: 'the configuration', content: file };
  const path = file ?? DEFAULT_FILE;
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' && file === undefined)
      return { origin: path, content: {} };
    throw new GatewayError(
      'config_unreadable',
      { path, reason: fileReason(error) },
      { cause: error },
    );
  }
  text = text.replace(/^\uFEFF/, '');
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new GatewayError('config_not_json', { path, reason: jsonMistake(text, error as Error) });
  }
  if (!isObject(content))
    throw new GatewayError('config_not_json', { path, reason: 'it holds another value' });
  return { origin: path, content, text };
}

function flatten(
  content: Readonly<Record<string, unknown>>,
  rows: SettingsTable,
  report: (key: string, wrong: string, hint?: string) => void,
): Map<string, unknown> {
  const values = new Map<string, unknown>();
  const keys = Object.entries(rows).flatMap(([key, row]) => keysOf(key, row));
  const walk = (object: Readonly<Record<string, unknown>>, prefix: string) => {
    for (const [name, value] of Object.entries(object)) {
      const key = prefix + name;
      if (keys.includes(key)) values.set(key, value);
      else if (!keys.some((known) => known.startsWith(`${key}.`)))
        report(key, 'is not a setting', suggestion(key, rows));
      else if (isObject(value)) walk(value, `${key}.`);
      else report(key, 'must be an object of settings');
    }
  };
  // Editors read `$schema`: https://json-schema.org/draft/2020-12/json-schema-core#section-8.1.1
  const { $schema: _, ...given } = content;
  walk(given, '');
  return values;
}

function suggestion(key: string, rows: SettingsTable): string {
  const depth = key.split('.').length;
  const known = Object.entries(rows).flatMap(([it, row]) =>
    row.withdrawn === undefined ? keysOf(it, row) : [],
  );
  const groups = known.map((it) => it.split('.').slice(0, depth).join('.'));
  return didYouMean(key, new Set([...groups, ...known]));
}

function nest(values: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const root: Record<string, unknown> = {};
  for (const [key, value] of values) {
    const path = key.split('.');
    const last = path.pop()!;
    let at = root;
    for (const part of path) at = (at[part] ??= {}) as Record<string, unknown>;
    if (value !== undefined) at[last] = Array.isArray(value) ? [...(value as unknown[])] : value;
  }
  return deepFreeze(root);
}

function deepFreeze<T extends object>(object: T): T {
  for (const value of Object.values(object))
    if (typeof value === 'object' && value !== null) deepFreeze(value as object);
  return Object.freeze(object);
}
