import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  BrokenManifest,
  type Discovery,
  importDefault,
  type InstalledPlugin,
  isPluginPackage,
  type PackageJson,
  readPlugins,
} from '@gateway/core/plugins';
import { didYouMean, GatewayError } from '@gateway/core/errors';
import { conformance, metricsRules, sourceRules, tracerRules, type RuleResult } from '@gateway/plugin-conformance';
import { paint } from '../output/paint.js';
import { findPlugins } from './find.js';

/** What the suite has found, by plugin. */
export interface Verdict {
  readonly results: readonly (RuleResult & { readonly kind: string; readonly plugin: string })[];
  readonly failed: number;
}

const rulesOf = { source: sourceRules, tracer: tracerRules, metrics: metricsRules };

/**
 * Runs the conformance suite on the plugins of a package.
 *
 * @param where a folder, or the name of an installed plugin
 * @param rules names of the rules to judge; all when there are none
 * @param say is given each line as it is known
 * @throws GatewayError `plugin_unknown`, `not_a_plugin`, `plugin_manifest_broken`, `plugin_without_rig`, `plugin_import`, `wrong_use`
 */
export async function judgePackage(
  where: string,
  { discovery, rules, say }: { discovery: Discovery; rules: readonly string[]; say: (line: string) => void },
): Promise<Verdict> {
  const plugins = pluginsAt(where, discovery);
  checkRules(rules, plugins);
  const results: Verdict['results'][number][] = [];
  for (const plugin of plugins) {
    const { kind, name } = plugin;
    say(`${kind} ${name} (${plugin.package} ${plugin.version})`);
    const rig = await rigOf(plugin);
    for await (const result of conformance(kind, await importDefault(plugin), rig, rules.length > 0 ? { rules } : {})) {
      results.push({ kind, plugin: name, ...result });
      say(lineOf(result));
    }
  }
  const count = (outcome: RuleResult['outcome']) => results.filter((it) => it.outcome === outcome).length;
  say(`${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped`);
  return { results, failed: count('failed') };
}

function pluginsAt(where: string, discovery: Discovery): readonly InstalledPlugin[] {
  const folder = resolve(where);
  if (!existsSync(join(folder, 'package.json'))) {
    const { plugins, refused } = findPlugins(where, discovery);
    if (refused[0]) throw refused[0].error;
    return plugins;
  }
  const json = packageJsonAt(folder);
  const name = typeof json['name'] === 'string' ? json['name'] : where;
  if (!isPluginPackage(json)) throw new GatewayError('not_a_plugin', { package: name, reason: 'its package.json has no `gateway` object' });
  try {
    return readPlugins(folder, json, folder);
  } catch (cause) {
    if (!(cause instanceof BrokenManifest)) throw cause;
    throw new GatewayError('plugin_manifest_broken', { package: name, reason: cause.message }, { cause });
  }
}

function packageJsonAt(folder: string): PackageJson {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageJson;
  } catch (cause) {
    throw new GatewayError(
      'plugin_manifest_broken',
      { package: folder, reason: `its package.json: ${(cause as Error).message}` },
      { cause },
    );
  }
}

async function rigOf(plugin: InstalledPlugin): Promise<unknown> {
  const { kind, name, manifest, folder } = plugin;
  const { conformance: file } = manifest;
  if (file === undefined) throw new GatewayError('plugin_without_rig', { kind, name, file: 'its manifest names none' });
  if (!existsSync(join(folder, file)))
    throw new GatewayError('plugin_without_rig', { kind, name, file: `there is no ${file} in ${folder}` });
  return importDefault(plugin, file);
}

function checkRules(rules: readonly string[], plugins: readonly InstalledPlugin[]): void {
  const known = plugins.flatMap(({ kind }) => rulesOf[kind].map(({ name }) => name));
  const unknown = rules.find((rule) => !known.includes(rule));
  if (unknown === undefined) return;
  throw new GatewayError('wrong_use', {
    sentence: `there is no rule ${unknown}${didYouMean(unknown, known)}`,
    fix: `give one of ${known.join(', ')}`,
  });
}

function lineOf(result: RuleResult): string {
  switch (result.outcome) {
    case 'passed':
      return `  ${paint('green', '✔')} ${result.rule}`;
    case 'failed':
      return `  ${paint('red', '✘')} ${result.rule}: ${result.sentence}\n      ${paint('red', result.reason)}`;
    case 'skipped':
      return `  - ${result.rule}, skipped: ${result.reason}`;
  }
}
