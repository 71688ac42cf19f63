import { crossChecks, readConfig, type Config, type ConfigOptions, type FoundProblem, type ReadConfig } from '@gateway/core/config';
import { sealer } from '@gateway/core/crypto';
import { GatewayError, isGatewayError, type Problem } from '@gateway/core/errors';
import { isMissed, missingSettings, previewPlugins, readLicence, type Discovery, type Licence, type PluginState } from '@gateway/core/plugins';
import { jsonLine } from './json-line.js';

/** What a gateway that started with these settings would find. */
export interface CheckedConfig {
  /** The configuration file, when there is one. */
  readonly file: string | undefined;
  /** How many settings are given, by flag, variable or file. */
  readonly given: number;
  /** Everything that is wrong. */
  readonly problems: readonly Problem[];
  /** What is not wrong and worth a look. */
  readonly warnings: readonly Problem[];
  /** Plugins that would be active or not. */
  readonly plugins: readonly PluginState[];
}

/** Checks the settings like `server` and `agent` do, and does not stop at the first mistake. Nothing is connected to and no plugin is loaded. */
export function checkConfig(options: ConfigOptions, discovery: Discovery): CheckedConfig {
  const { read, unread } = readAsFarAsPossible(options);
  const { config, origins } = read;
  const place = (problem: Problem): Problem => placed(problem, read);
  const licence = readLicence({ token: config.license_key, publicKey: config.license_public_key });
  const plugins = previewPlugins({ discovery, resolved: read, licence });
  const missed = plugins.filter((plugin) => isMissed(plugin, config) && plugin.code !== 'plugin_settings');
  const missedProblems = missed.map((it) => ({
    key: keyOf(it),
    origin: originOf(keyOf(it), read),
    sentence: `${it.name}: ${it.reason}; ${it.fix}`,
  }));
  const key = encryptionKey(config, read);
  return {
    file: read.file?.path,
    given: [...origins.values()].filter((origin) => origin !== 'default').length,
    problems: [
      ...unread,
      ...read.withdrawn.map(plain).map(place),
      ...read.problems.map(plain).map(place),
      ...contradictions(read).map(place),
      ...unmetNeeds(plugins, discovery, read),
      ...key.problems.map(place),
      ...(config.plugins.strict ? missedProblems.map(place) : []),
    ],
    warnings: [...key.warnings, ...licenceWarnings(licence, read).map(place), ...(config.plugins.strict ? [] : missedProblems.map(place))],
    plugins,
  };
}

/** A file that cannot be read is one problem more: what the flags and the environment say is checked all the same. */
function readAsFarAsPossible(options: ConfigOptions): { read: ReadConfig; unread: Problem[] } {
  try {
    return { read: readConfig(options), unread: [] };
  } catch (error) {
    if (!isGatewayError(error, 'config_unreadable') && !isGatewayError(error, 'config_not_json')) throw error;
    const { path } = error.details;
    return { read: readConfig({ ...options, file: {} }), unread: [{ key: '', origin: path, sentence: `${error.message}; ${error.fix}` }] };
  }
}

function plain({ key, origin, sentence }: FoundProblem | ReadConfig['withdrawn'][number]): Problem {
  return { key, origin, sentence };
}

/** With the line in the file where the setting stands. */
function placed({ key, origin, sentence }: Problem, { file }: ReadConfig): Problem {
  const line = file && origin === file.path ? jsonLine(file.text, key) : undefined;
  if (line === undefined) return { key, origin, sentence };
  return { key, origin: `${origin}:${line}`, sentence: sentence.replace(`(from ${origin})`, `(from ${origin}:${line})`) };
}

/** Settings that do not go together. Where one of a group is wrong by itself, its default stands in for it, and what follows from that is not told. */
function contradictions({ config, origins, problems }: ReadConfig): Problem[] {
  const groupOf = (key: string) => key.split('.', 1)[0];
  return crossChecks(config, origins).filter(({ key }) => !problems.some((it) => groupOf(it.key) === groupOf(key)));
}

/** What plugins that are asked for cannot do without. */
function unmetNeeds(plugins: readonly PluginState[], discovery: Discovery, read: ReadConfig): Problem[] {
  return discovery.plugins
    .filter(({ kind, name }) => plugins.some((it) => it.kind === kind && it.name === name && it.code === 'plugin_settings'))
    .flatMap((plugin) =>
      missingSettings(plugin, read).map((key) => ({
        key,
        origin: 'default',
        sentence: `${key} is not set, and the ${plugin.kind} plugin ${plugin.name} needs it`,
      })),
    );
}

/** A key that cannot be one is a mistake. Without one the other settings may still be looked at: it is often known to the processes alone. */
function encryptionKey({ encryption_key: key }: Config, read: ReadConfig): { problems: Problem[]; warnings: Problem[] } {
  try {
    sealer(key);
    return { problems: [], warnings: [] };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const problem = { key: 'encryption_key', origin: originOf('encryption_key', read), sentence: `${error.message}; ${error.fix}` };
    return isGatewayError(error, 'encryption_key_missing') ? { problems: [], warnings: [problem] } : { problems: [problem], warnings: [] };
  }
}

/** The processes go on without a licence that is not in force. */
function licenceWarnings({ problem }: Licence, read: ReadConfig): Problem[] {
  return problem ? [{ key: 'license_key', origin: originOf('license_key', read), sentence: `${problem.message}; ${problem.fix}` }] : [];
}

/** The setting that asks for a plugin; its package when none does. */
function keyOf({ kind, name }: PluginState): string {
  return kind === 'tracer' ? 'tracer.type' : kind === 'metrics' ? 'metrics.metrics_backend' : name;
}

function originOf(key: string, { origins }: ReadConfig): string {
  return origins.get(key) ?? 'default';
}
