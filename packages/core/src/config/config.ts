import { isDeepStrictEqual } from 'node:util';
import type { SettingProblem } from '../errors/error-row.js';
import { GatewayError } from '../errors/errors.js';
import { repeatedMembers } from '../json/json-members.js';
import { maskAddress } from '../logging/redaction.js';
import { type ConfigFile, flatten, readConfigFile } from './config-file.js';
import { connectionChecks } from './cross-checks.js';
import {
  envValue,
  type Environment,
  type FlagValues,
  type FoundProblem,
  flagValue,
  type GivenValue,
  secretFileValue,
  serviceLinks,
  unknownVariables,
} from './given-value.js';
import { parseSetting } from './parse-value.js';
import {
  keysOf,
  settingAt,
  settings,
  type Config,
  type Setting,
  type SettingsTable,
} from './settings.js';

export interface ConfigOptions {
  /**
   * Decides which setting a shared flag sets: `server` and `agent` each have their own `--port`.
   */
  readonly command?: string;
  readonly flags?: FlagValues;
  readonly env?: Environment;
  /** Default: `./gateway.json`, if it exists. */
  readonly file?: ConfigFile;
  readonly rows?: SettingsTable;
}

export interface Resolved {
  readonly config: Config;
  /**
   * By key: a flag (`--port`), an environment variable (`AGENT_PORT`), the file (`./gateway.json`)
   * or `default`.
   */
  readonly origins: ReadonlyMap<string, string>;
  /** They keep the plugin inactive but do not stop the gateway. */
  readonly pluginProblems: readonly SettingProblem[];
  readonly warnings: readonly SettingProblem[];
  readonly rows: SettingsTable;
}

export interface ReadConfig extends Resolved {
  /** In `config`, a setting with a mistake has its default value. */
  readonly problems: readonly FoundProblem[];
  readonly withdrawn: readonly (SettingProblem & {
    readonly form: string;
    readonly instead: string;
  })[];
  /** Undefined if no file was read or if its content was passed directly. */
  readonly file?: { readonly path: string; readonly text: string };
}

/**
 * Precedence, highest first: flags, environment variables, file, defaults.
 * @throws GatewayError `withdrawn` for a setting that no longer exists; `config_unreadable` or
 *   `config_not_json` for the file; `invalid_settings` with all mistakes, or `wrong_flags` if all
 *   of them are in flags
 */
export function resolveConfig(options: ConfigOptions = {}): Resolved {
  const { problems, withdrawn, ...resolved } = readConfig(options);
  const { config, origins, rows } = resolved;
  if (withdrawn[0]) throw new GatewayError('withdrawn', withdrawn[0]);
  const fatal: SettingProblem[] = problems.filter(({ key }) => rows[key]?.owner === undefined);
  if (fatal.length === 0) fatal.push(...connectionChecks(config, origins));
  if (fatal.length === 0) return resolved;
  throw new GatewayError(
    fatal.every(({ origin }) => origin.startsWith('--')) ? 'wrong_flags' : 'invalid_settings',
    { problems: fatal },
  );
}

/**
 * Like `resolveConfig`, but returns the mistakes instead of throwing them.
 * @throws GatewayError `config_unreadable` or `config_not_json` for the file
 */
export function readConfig(options: ConfigOptions = {}): ReadConfig {
  const { command = '', flags = {}, env = process.env } = options;
  const rows: SettingsTable = options.rows ?? settings;
  const { origin, content, text } = readConfigFile(options.file);
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
  const given = (key: string, row: Setting): readonly GivenValue[] => {
    const flag = flagValue(key, row, command, flags);
    const inFile = flag ? undefined : secretFileValue(key, row, rows, env);
    if (inFile && 'wrong' in inFile) {
      problems.push({ key, origin: inFile.origin, sentence: inFile.wrong, from: 'env' });
      return [];
    }
    const above = flag ?? inFile ?? envValue(key, row, env);
    if (above) return [above];
    const places = keysOf(key, row).filter((place) => fromFile.has(place));
    return places.map((place) => ({ value: fromFile.get(place), origin, from: 'file', place }));
  };

  const values = new Map<string, unknown>();
  const origins = new Map<string, string>();
  const levels = new Map<string, FoundProblem['from']>();
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
    levels.set(key, it.from);
  }

  for (const key of Object.keys(rows)) {
    const ways = [key, `${key}_file`, `${key}_command`].filter((it) => levels.has(it));
    if (!rows[key]!.secret || ways.length < 2) continue;
    const level = LEVELS.find((it) => ways.some((way) => levels.get(way) === it));
    const [first, second] = ways.filter((it) => levels.get(it) === level);
    const said = (way: string) => `${way} (from ${origins.get(way)})`;
    if (second)
      problems.push({
        key: second,
        origin: origins.get(second)!,
        from: level!,
        sentence: `${said(first!)} and ${said(second)} are both set; set only one of them`,
      });
    for (const way of ways.filter((it) => it !== first)) {
      values.set(way, undefined);
      origins.set(way, 'default');
    }
  }

  openMetricsGates(values, origins);
  const pluginProblems = problems.filter(({ key }) => rows[key]?.owner !== undefined);
  const warnings = [...serviceLinks(rows, env), ...unknownVariables(rows, env)];
  const config = nest(values) as Config;
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

/** Highest precedence first. */
const LEVELS = ['flag', 'env', 'file'] as const;

function agreed(
  all: readonly GivenValue[],
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

/** A hint for a URL that was given as the host: the settings for its parts. */
function partsOf(key: string, rows: SettingsTable): string {
  const group = key.slice(0, key.lastIndexOf('.') + 1);
  const names = ['scheme', 'username', 'password', 'host', 'port', 'database', 'options'];
  const parts = group === '' ? [] : names.map((name) => group + name).filter((it) => it in rows);
  return parts.length === 0 ? '' : `; give its parts with ${parts.join(', ')}`;
}

/** Mistakes are ignored, because plugins have not added their settings to the table yet. */
export function pluginsDirOf({
  env = process.env,
  file,
}: Pick<ConfigOptions, 'env' | 'file'> = {}): string {
  const row = settings['plugins.dir'];
  try {
    const fromFile = flatten(readConfigFile(file).content, settings, () => undefined).get(
      'plugins.dir',
    );
    const dir = envValue('plugins.dir', row, env)?.value ?? fromFile;
    return typeof dir === 'string' ? dir : row.default;
  } catch {
    return row.default;
  }
}

/** `$VISUAL`, else `$EDITOR`. */
export function editorCommand(
  { VISUAL: visual, EDITOR: editor }: Environment = process.env,
): string | undefined {
  return visual?.trim() || editor?.trim() || undefined;
}

export function settingsAt(config: Config, key: string): Readonly<Record<string, unknown>> {
  return (settingAt(config, key) as Record<string, unknown> | undefined) ?? {};
}

const METRICS = 'pullmetrics';

/**
 * `--metrics-backend` enables metrics; a backend set in the file or the environment does not.
 * `metrics.enabled` without a backend selects the built-in one and enables its feature flag.
 */
function openMetricsGates(values: Map<string, unknown>, origins: Map<string, string>): void {
  const isDefault = (key: string) => origins.get(key) === 'default';
  const imply = (key: string, value: unknown, origin: string) => {
    values.set(key, value);
    if (isDefault(key)) origins.set(key, origin);
  };
  const backend = 'metrics.metrics_backend';
  if (isDefault('metrics.enabled') && origins.get(backend) === '--metrics-backend')
    imply('metrics.enabled', true, '--metrics-backend');
  else if (values.get('metrics.enabled') === true && isDefault(backend)) {
    imply(backend, METRICS, 'metrics.enabled');
    const flags = values.get('enable_feature_flag') as readonly string[];
    imply('enable_feature_flag', [...new Set([...flags, METRICS])], 'metrics.enabled');
  }
}

/** From dotted keys, deeply frozen. */
export function nest(values: ReadonlyMap<string, unknown>): Record<string, unknown> {
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
