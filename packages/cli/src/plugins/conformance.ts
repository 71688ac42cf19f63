import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { didYouMean, GatewayError } from '@gateway/core/errors';
import {
  BrokenManifest,
  importDefault,
  isPluginPackage,
  readPlugins,
  type Discovery,
  type InstalledPlugin,
  type PackageJson,
} from '@gateway/core/plugins';
import { importExtra } from '@gateway/core/process';
import type { RuleResult } from '@gateway/plugin-conformance';
import { paint } from '../output/paint.js';
import { wrongUse } from '../app/flag-values.js';

type PluginResult = RuleResult & { readonly kind: string; readonly plugin: string };

type Kit = typeof import('@gateway/plugin-conformance');

/**
 * Runs the given rules, or all, on the plugins of a folder, an installed package or an installed
 * plugin.
 *
 * @throws GatewayError `plugin_unknown`, `not_a_plugin`, `plugin_manifest_broken`,
 *   `plugin_without_rig` or `plugin_import` if the plugins cannot be tested, or `wrong_use` for an
 *   unknown rule
 */
export async function runConformance(
  target: string,
  {
    discovery,
    rules,
    print,
  }: { discovery: Discovery; rules: readonly string[]; print: (line: string) => void },
): Promise<readonly PluginResult[]> {
  const plugins = pluginsAt(target, discovery);
  const kit = await importExtra<Kit>('@gateway/plugin-conformance', 'gateway plugins test');
  checkRules(rules, plugins, kit);
  const results: PluginResult[] = [];
  for (const plugin of plugins) {
    const { kind, name } = plugin;
    print(`${kind} ${name} (${plugin.package} ${plugin.version})`);
    const rig = await rigOf(plugin);
    for await (const result of kit.conformance(
      kind,
      await importDefault(plugin),
      rig,
      rules.length > 0 ? { rules } : {},
    )) {
      results.push({ kind, plugin: name, ...result });
      print(lineOf(result));
    }
  }
  const count = (outcome: RuleResult['outcome']) =>
    results.filter((it) => it.outcome === outcome).length;
  print(`${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped`);
  return results;
}

function pluginsAt(target: string, discovery: Discovery): readonly InstalledPlugin[] {
  const folder = resolve(target);
  if (!existsSync(join(folder, 'package.json'))) return installedPlugins(target, discovery);
  const broken = (name: string, reason: string, cause: unknown) =>
    new GatewayError('plugin_manifest_broken', { package: name, reason }, { cause });
  let json: PackageJson;
  try {
    json = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageJson;
  } catch (cause) {
    throw broken(folder, `its package.json: ${(cause as Error).message}`, cause);
  }
  const name = typeof json['name'] === 'string' ? json['name'] : target;
  if (!isPluginPackage(json))
    throw new GatewayError('not_a_plugin', {
      package: name,
      reason: 'its package.json has no `gateway` object',
    });
  try {
    return readPlugins(folder, json, folder);
  } catch (cause) {
    throw cause instanceof BrokenManifest ? broken(name, cause.message, cause) : cause;
  }
}

function installedPlugins(
  name: string,
  { plugins, refused }: Discovery,
): readonly InstalledPlugin[] {
  const isNamed = (it: { readonly name: string; readonly package: string }) =>
    it.name === name || it.package === name;
  const broken = refused.find(isNamed);
  if (broken) throw broken.error;
  const found = plugins.filter(isNamed);
  if (found.length > 0) return found;
  const names = [
    ...new Set([...plugins, ...refused].flatMap((it) => [it.name, it.package])),
  ].sort();
  throw new GatewayError('plugin_unknown', {
    name,
    known: names.join(', ') || 'none',
    hint: didYouMean(name, names),
  });
}

async function rigOf(plugin: InstalledPlugin): Promise<unknown> {
  const { kind, name, manifest, folder } = plugin;
  const { conformance: file } = manifest;
  if (file !== undefined && existsSync(join(folder, file))) return importDefault(plugin, file);
  const missing =
    file === undefined ? 'its manifest names none' : `there is no ${file} in ${folder}`;
  throw new GatewayError('plugin_without_rig', { kind, name, file: missing });
}

function checkRules(
  rules: readonly string[],
  plugins: readonly InstalledPlugin[],
  { sourceRules, codecRules, tracerRules, metricsRules }: Kit,
): void {
  const rulesOf = {
    source: sourceRules,
    codec: codecRules,
    tracer: tracerRules,
    metrics: metricsRules,
  };
  const known = plugins.flatMap(({ kind }) => rulesOf[kind].map(({ name }) => name));
  const unknown = rules.find((rule) => !known.includes(rule));
  if (unknown === undefined) return;
  throw wrongUse(
    `there is no rule ${unknown}${didYouMean(unknown, known)}`,
    `give one of ${known.join(', ')}`,
  );
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
