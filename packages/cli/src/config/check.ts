import { crossChecks, readConfig, type ConfigOptions, type ReadConfig } from '@gateway/core/config';
import { sealer } from '@gateway/core/crypto';
import { isGatewayError, maskUrls, type SettingProblem } from '@gateway/core/errors';
import {
  isMissed,
  missingSettings,
  previewPlugins,
  type Discovery,
  type PluginState,
} from '@gateway/core/plugins';
import { missingExtra } from '@gateway/core/process';
import { licenceOf } from '../app/installation.js';
import { withLine } from './with-line.js';

export interface CheckedConfig {
  readonly file: string | undefined;
  /** Settings given by a flag, an environment variable or the file. */
  readonly given: number;
  readonly problems: readonly SettingProblem[];
  readonly warnings: readonly SettingProblem[];
  readonly plugins: readonly PluginState[];
}

/**
 * As `server` and `agent` do, but collects all problems instead of throwing. Opens no connections
 * and loads no plugin code.
 */
export function checkConfig(options: ConfigOptions, discovery: Discovery): CheckedConfig {
  const { read, unread } = readAsFarAsPossible(options);
  const { config, origins } = read;
  const licence = licenceOf(config);
  const plugins = previewPlugins({ discovery, resolved: read, licence });
  const problems: SettingProblem[] = [
    ...unread,
    ...read.withdrawn,
    ...read.problems,
    ...conflicts(read),
    ...unmetNeeds(plugins, discovery, read),
  ];
  const warnings: SettingProblem[] = [...read.warnings];
  const add = (to: SettingProblem[], key: string, sentence: string) =>
    to.push({ key, origin: origins.get(key) ?? 'default', sentence });
  try {
    sealer(config.encryption_key);
  } catch (error) {
    if (!isGatewayError(error)) throw error;
    // Only a warning, because often only the server and the agents have the key.
    add(
      error.code === 'encryption_key_missing' ? warnings : problems,
      'encryption_key',
      `${error.message}; ${error.fix}`,
    );
  }
  if (licence.problem)
    add(warnings, 'license_key', `${licence.problem.message}; ${licence.problem.fix}`);
  const missing =
    config.archive.url !== undefined && missingExtra('@gateway/archive', 'archive.url');
  if (missing) add(problems, 'archive.url', `${missing.message}; ${missing.fix}`);
  for (const plugin of plugins) {
    if (!isMissed(plugin, config) || plugin.code === 'plugin_settings') continue;
    add(
      config.plugins.strict ? problems : warnings,
      keyOf(plugin),
      `${plugin.name}: ${plugin.reason}; ${plugin.fix}`,
    );
  }
  return {
    file: read.file?.path,
    given: [...origins.values()].filter((origin) => origin !== 'default').length,
    problems: problems.map((it) => shownOf(it, read)),
    warnings: warnings.map((it) => shownOf(it, read)),
    plugins,
  };
}

/**
 * If the file is unreadable, returns that problem with the settings from flags and environment
 * variables, so that these are still checked.
 */
function readAsFarAsPossible(options: ConfigOptions): {
  read: ReadConfig;
  unread: SettingProblem[];
} {
  try {
    return { read: readConfig(options), unread: [] };
  } catch (error) {
    if (!isGatewayError(error, 'config_unreadable') && !isGatewayError(error, 'config_not_json'))
      throw error;
    const { path } = error.details;
    return {
      read: readConfig({ ...options, file: {} }),
      unread: [{ key: '', origin: String(path), sentence: `${error.message}; ${error.fix}` }],
    };
  }
}

/**
 * Adds line numbers and masks URLs in the sentence, which quotes settings and can contain
 * credentials.
 */
function shownOf(problem: Parameters<typeof withLine>[0], read: ReadConfig): SettingProblem {
  const told = withLine(problem, read);
  return { ...told, sentence: maskUrls(told.sentence) };
}

/** Groups with an invalid setting are skipped, because a default has replaced its value. */
function conflicts({ config, origins, problems }: ReadConfig): SettingProblem[] {
  const groupOf = (key: string) => key.split('.', 1)[0];
  return crossChecks(config, origins).filter(
    ({ key }) => !problems.some((it) => groupOf(it.key) === groupOf(key)),
  );
}

function unmetNeeds(
  plugins: readonly PluginState[],
  discovery: Discovery,
  read: ReadConfig,
): SettingProblem[] {
  return discovery.plugins
    .filter(({ kind, name }) =>
      plugins.some((it) => it.kind === kind && it.name === name && it.code === 'plugin_settings'),
    )
    .flatMap((plugin) => {
      const need = `is not set, and the ${plugin.kind} plugin ${plugin.name} needs it`;
      return missingSettings(plugin, read).map((key) => ({
        key,
        origin: 'default',
        sentence: `${key} ${need}`,
      }));
    });
}

/** The setting that selects the plugin, or else the plugin's name. */
function keyOf({ kind, name }: PluginState): string {
  return kind === 'tracer' ? 'tracer.type' : kind === 'metrics' ? 'metrics.metrics_backend' : name;
}
