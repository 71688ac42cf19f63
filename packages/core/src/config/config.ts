import { readFileSync } from 'node:fs';
import { connectionChecks } from './cross-checks.js';
import type { Problem } from '../errors/error-row.js';
import { GatewayError } from '../errors/errors.js';
import { fileReason } from '../errors/file-error.js';
import { jsonMistake } from '../json/json-mistake.js';
import { isObject } from '../json/json-object.js';
import { parseSetting } from './parse-value.js';
import { MASK, maskUrls } from '../logging/redaction.js';
import { envOf, flagsOf, settings, type Config, type Setting, type SettingsTable } from './settings.js';
import { didYouMean } from '../errors/suggest.js';

const DEFAULT_FILE = './gateway.json';

/** Values of flags by name, as the command line gives them. */
export type FlagValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface ConfigOptions {
  /** The command, which decides the flags that count: `port` is another setting on `server` than on `agent`. */
  readonly command?: string;
  readonly flags?: FlagValues;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The configuration file: a path, or its content. Without one `./gateway.json` is read if it is there. */
  readonly file?: string | Readonly<Record<string, unknown>> | undefined;
  /** The table, with the rows of the plugins. */
  readonly rows?: SettingsTable;
}

export interface Resolved {
  /** Nested, frozen. */
  readonly config: Config;
  /** Where each setting has its value from: a flag (`--port`), a variable (`AGENT_PORT`), the file (`./gateway.json`), or `default`. */
  readonly origins: ReadonlyMap<string, string>;
  /** Mistakes in settings of plugins: they keep the plugin from becoming active, and nothing else from starting. */
  readonly pluginProblems: readonly Problem[];
  readonly rows: SettingsTable;
}

/** A mistake, and what kind of place it is in. */
export interface FoundProblem extends Problem {
  readonly from: 'flag' | 'env' | 'file';
}

/** What `resolveConfig` is made from, with everything that is wrong in it. */
export interface ReadConfig extends Resolved {
  /** All mistakes, those in settings of plugins included. Each wrong setting has its default in `config`. */
  readonly problems: readonly FoundProblem[];
  /** Withdrawn settings that were given. */
  readonly withdrawn: readonly (Problem & { readonly form: string; readonly instead: string })[];
  /** The file and its text; nothing when the default file is not there, or when the content was given. */
  readonly file?: { readonly path: string; readonly text: string };
}

interface Given {
  readonly value: unknown;
  readonly origin: string;
  readonly from: FoundProblem['from'];
}

/**
 * The settings by precedence: flags over environment variables over the file over defaults. This file alone reads the environment and the
 * configuration file.
 *
 * @throws GatewayError `withdrawn`, `config_unreadable`, `config_not_json`; `invalid_settings` with all mistakes at once, or `wrong_flags`
 * when all of them are flags
 */
export function resolveConfig(options: ConfigOptions = {}): Resolved {
  const { problems, withdrawn, config, origins, pluginProblems, rows } = readConfig(options);
  if (withdrawn[0]) throw new GatewayError('withdrawn', withdrawn[0]);
  const fatal = problems.filter(({ key }) => rows[key]?.owner === undefined);
  if (fatal.length > 0) {
    throw new GatewayError(fatal.every(({ from }) => from === 'flag') ? 'wrong_flags' : 'invalid_settings', { problems: fatal });
  }
  const together = connectionChecks(config, origins);
  if (together.length > 0) {
    const byFlags = together.every(({ origin }) => origin.startsWith('--'));
    throw new GatewayError(byFlags ? 'wrong_flags' : 'invalid_settings', { problems: together });
  }
  return { config, origins, pluginProblems, rows };
}

/**
 * The same, with the mistakes in place of an error.
 *
 * @throws GatewayError `config_unreadable`, `config_not_json`
 */
export function readConfig(options: ConfigOptions = {}): ReadConfig {
  const { command = '', flags = {}, env = process.env } = options;
  const rows: SettingsTable = options.rows ?? settings;
  const { origin, content, text } = readFile(options.file);
  const problems: FoundProblem[] = [];
  const withdrawn: ReadConfig['withdrawn'][number][] = [];
  const fromFile = flatten(content, rows, (key, wrong, hint = '') =>
    problems.push({ key, origin, sentence: `${key} ${wrong} (from ${origin})${hint}`, from: 'file' }),
  );
  const given = (key: string, row: Setting): Given | undefined =>
    flagValue(row, command, flags) ??
    envValue(key, row, env) ??
    (fromFile.has(key) ? { value: fromFile.get(key), origin, from: 'file' } : undefined);

  const values = new Map<string, unknown>();
  const origins = new Map<string, string>();
  for (const [key, row] of Object.entries(rows)) {
    const it = given(key, row);
    if (row.withdrawn !== undefined) {
      if (it) withdrawn.push(withdrawal(key, it, row.withdrawn));
      continue;
    }
    values.set(key, row.default);
    origins.set(key, 'default');
    if (!it) continue;
    const parsed = parseSetting(row, it.value, it.from !== 'file');
    if ('wrong' in parsed) {
      problems.push({ key, origin: it.origin, sentence: `${key} ${parsed.wrong} (from ${it.origin})${parsed.hint ?? ''}`, from: it.from });
      continue;
    }
    values.set(key, parsed.value);
    origins.set(key, it.origin);
  }

  enableMetricsByFlag(values, origins);
  const pluginProblems = problems.filter(({ key }) => rows[key]?.owner !== undefined);
  const config = nest(values) as unknown as Config;
  return { config, origins, pluginProblems, rows, problems, withdrawn, ...(text === undefined ? {} : { file: { path: origin, text } }) };
}

function withdrawal(key: string, given: Given, instead: string): ReadConfig['withdrawn'][number] {
  const form = formOf(key, given);
  return { key, origin: given.origin, form, instead, sentence: `${form} is no longer valid: ${instead}` };
}

/**
 * The folder of third-party plugins, which must be known before there is a whole table to check the configuration against: mistakes are
 * left for `resolveConfig` to tell.
 */
export function pluginsDirOf({ env = process.env, file }: Pick<ConfigOptions, 'env' | 'file'> = {}): string {
  const row = settings['plugins.dir'];
  try {
    const fromFile = flatten(readFile(file).content, settings, () => undefined).get('plugins.dir');
    const dir = envValue('plugins.dir', row, env)?.value ?? fromFile;
    return typeof dir === 'string' ? dir : row.default;
  } catch {
    return row.default;
  }
}

/** The command of the user's editor, as a shell reads it; undefined when the environment names none. */
export function editorCommand({ VISUAL: visual, EDITOR: editor }: NonNullable<ConfigOptions['env']> = process.env): string | undefined {
  return visual?.trim() || editor?.trim() || undefined;
}

/** The value of a setting by its key; undefined when it has none. */
export function settingAt(config: Config, key: string): unknown {
  let at: unknown = config;
  for (const part of key.split('.')) at = (at as Record<string, unknown> | undefined)?.[part];
  return at;
}

/** The settings below a key, for example those of a plugin at `tracer.otel`; empty when there are none. */
export function settingsAt(config: Config, key: string): Readonly<Record<string, unknown>> {
  return (settingAt(config, key) as Record<string, unknown> | undefined) ?? {};
}

/** The settings as `gateway config` prints them: nested, secrets masked unless they are asked for. */
export function presentConfig({ config, rows }: Resolved, { showSecrets = false } = {}): Record<string, unknown> {
  const values = new Map<string, unknown>();
  for (const [key, row] of Object.entries(rows)) {
    if (row.withdrawn === undefined) values.set(key, presented(row, settingAt(config, key), showSecrets));
  }
  return nest(values);
}

/** One line per setting with its value and origin. */
export function presentOrigins(
  { config, origins, rows }: Resolved,
  { showSecrets = false } = {},
): Record<string, { value: unknown; origin: string }> {
  const lines: Record<string, { value: unknown; origin: string }> = {};
  for (const [key, origin] of origins) lines[key] = { value: presented(rows[key]!, settingAt(config, key), showSecrets) ?? null, origin };
  return lines;
}

function presented(row: Setting, value: unknown, showSecrets: boolean): unknown {
  if (showSecrets || value === undefined || (Array.isArray(value) && value.length === 0)) return value;
  if (row.secret) return MASK;
  return typeof value === 'string' ? maskUrls(value) : value;
}

/** With the command line alone the backend's flag enables metrics; the file and the environment have to say so too. */
function enableMetricsByFlag(values: Map<string, unknown>, origins: Map<string, string>): void {
  if (origins.get('metrics.enabled') !== 'default' || origins.get('metrics.metrics_backend') !== '--metrics-backend') return;
  values.set('metrics.enabled', true);
  origins.set('metrics.enabled', '--metrics-backend');
}

function flagValue(row: Setting, command: string, flags: FlagValues): Given | undefined {
  for (const flag of flagsOf(row, command)) {
    const value = flags[flag];
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    if (row.flagUnset === 'negative' && Number(value) < 0) continue;
    if (row.flagUnset === 'zero' && value !== '' && Number(value) === 0) continue;
    return { value, origin: `--${flag}`, from: 'flag' };
  }
  return undefined;
}

/** An empty variable is one that was not set: container files pass variables on that way. */
function envValue(key: string, row: Setting, env: NonNullable<ConfigOptions['env']>): Given | undefined {
  const name = envOf(key, row);
  return env[name] ? { value: env[name], origin: name, from: 'env' } : undefined;
}

function formOf(key: string, { value, origin, from }: Given): string {
  return from === 'file' ? `${key} in ${origin}` : `${origin}=${String(value)}`;
}

function readFile(file: ConfigOptions['file']): { origin: string; content: Readonly<Record<string, unknown>>; text?: string } {
  if (typeof file === 'object') return { origin: 'the configuration', content: file };
  const path = file ?? DEFAULT_FILE;
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' && file === undefined) return { origin: path, content: {} };
    throw new GatewayError('config_unreadable', { path, reason: fileReason(error) }, { cause: error });
  }
  text = text.replace(/^\uFEFF/, '');
  return { origin: path, content: parseFile(path, text), text };
}

function parseFile(path: string, text: string): Record<string, unknown> {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new GatewayError('config_not_json', { path, reason: jsonMistake(text, error as Error) });
  }
  if (!isObject(content)) throw new GatewayError('config_not_json', { path, reason: 'it holds something else' });
  return content;
}

/** Tells an editor which schema the file has; it is no setting. https://json-schema.org/draft/2020-12/json-schema-core#section-8.1.1 */
const SCHEMA = '$schema';

/** The values of the file by key. What is not a setting is reported. */
function flatten(
  content: Readonly<Record<string, unknown>>,
  rows: SettingsTable,
  report: (key: string, wrong: string, hint?: string) => void,
): Map<string, unknown> {
  const values = new Map<string, unknown>();
  const keys = Object.keys(rows);
  const walk = (object: Readonly<Record<string, unknown>>, prefix: string) => {
    for (const [name, value] of Object.entries(object)) {
      const key = prefix + name;
      if (Object.hasOwn(rows, key)) values.set(key, value);
      else if (!keys.some((known) => known.startsWith(`${key}.`))) report(key, 'is not a setting', suggestion(key, rows));
      else if (isObject(value)) walk(value, `${key}.`);
      else report(key, 'must be an object of settings');
    }
  };
  const { [SCHEMA]: _, ...given } = content;
  walk(given, '');
  return values;
}

/** The nearest setting or group of settings with the same parent, or the nearest of all. */
function suggestion(key: string, rows: SettingsTable): string {
  const depth = key.split('.').length;
  const known = Object.keys(rows).filter((it) => rows[it]?.withdrawn === undefined);
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
    if (value !== undefined) at[last] = Array.isArray(value) ? Object.freeze([...(value as unknown[])]) : value;
  }
  return deepFreeze(root);
}

function deepFreeze<T extends Record<string, unknown>>(object: T): T {
  for (const value of Object.values(object)) if (isObject(value)) deepFreeze(value);
  return Object.freeze(object);
}
