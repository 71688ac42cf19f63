import { listed, row, type Problem } from './error-row.js';

export interface Plugin {
  readonly kind: string;
  readonly name: string;
}

/** Plugins and the plugin folder. */
export const pluginErrors = {
  plugin_manifest_broken: row<{ package: string; reason: string }>({
    message: ({ package: name, reason }) => `the manifest of the plugin package ${name} is broken: ${reason}`,
    fix: () => 'correct the `gateway` object in its package.json, or install another version',
  }),
  plugin_setting_claimed: row<Plugin & { what: string; owner: string }>({
    message: ({ kind, name, what, owner }) => `the ${kind} plugin ${name} claims ${what}, which belongs to ${owner}`,
    fix: () => 'rename it in the settings file of the plugin, or remove one of the two',
  }),
  plugin_not_installed: row<{ package: string; folder: string }>({
    message: ({ package: name, folder }) => `the plugin package ${name} is named in ${folder}/package.json but is not installed`,
    fix: ({ package: name, folder }) => `run \`npm install\` in ${folder}, or \`npm uninstall ${name}\` there`,
  }),
  plugin_unknown: row<{ name: string; known: string; hint: string }>({
    http: 404,
    message: ({ name, hint }) => `there is no plugin and no plugin package named ${name}${hint}`,
    fix: ({ known }) => `name one of the installed plugins: ${known}`,
  }),
  not_a_plugin: row<{ package: string; reason: string }>({
    message: ({ package: name, reason }) => `${name} is not a plugin of the gateway: ${reason}`,
    fix: () => 'name a package with a `gateway` object in its package.json; see docs/guides/write-a-plugin.md',
  }),
  plugins_dir_unwritable: row<{ path: string; reason: string }>({
    message: ({ path, reason }) => `the plugin folder ${path} cannot be written: ${reason}`,
    fix: () => 'give this user the right to write there, or name another folder with plugins.dir (GATEWAY_PLUGINS_DIR)',
  }),
  npm_missing: row<{ reason: string }>({
    message: ({ reason }) => `npm cannot be run: ${reason}`,
    fix: () => 'install npm, which comes with Node, and put it on the PATH',
  }),
  npm_failed: row<{ command: string; folder: string; reason: string }>({
    message: ({ command, folder, reason }) => `\`${command}\` failed in ${folder}: ${reason}`,
    fix: () => 'check the name and version of the package, and that its registry can be reached from here',
  }),
  plugin_without_rig: row<Plugin & { file: string }>({
    message: ({ kind, name, file }) => `the ${kind} plugin ${name} has no conformance rig: ${file}`,
    fix: ({ kind }) =>
      `name the module with the rig as \`conformance\` in the manifest; \`gateway plugins create ${kind} <name>\` creates a plugin that has one`,
  }),
  plugins_missed: row<{ problems: readonly { readonly sentence: string }[] }>({
    message: ({ problems }) =>
      `plugins.strict is set, but these plugins that the configuration selects are not active:\n${listed(problems)}`,
    fix: () => 'follow `gateway plugins`, which lists every plugin with its fix, or start without --strict-plugins to do without them',
  }),
  plugin_missing: row<Plugin & { hint: string; setting: string }>({
    message: ({ kind, name, hint }) => `no ${kind} plugin named ${name} is installed${hint}`,
    fix: ({ setting }) => `install it, or correct ${setting}`,
  }),
  plugin_api: row<Plugin & { range: string; ours: string }>({
    message: ({ kind, name, range, ours }) => `the ${kind} plugin ${name} requires plugin API ${range}, but this gateway has ${ours}`,
    fix: () => 'install a version of the plugin, or of the gateway, that matches the other',
  }),
  plugin_not_selected: row<Plugin & { how: string }>({
    message: () => 'not selected',
    fix: ({ how }) => how,
  }),
  plugin_flag_off: row<Plugin & { flag: string }>({
    message: ({ flag }) => `the feature flag ${flag} is off`,
    fix: ({ flag }) => `switch ${flag} on with --enable-feature-flag=${flag} or GATEWAY_ENABLE_FEATURE_FLAG=${flag}`,
  }),
  plugin_not_entitled: row<Plugin & { entitlement: string; licence: string }>({
    http: 403,
    message: ({ entitlement, licence }) => `${licence} does not include ${entitlement}`,
    fix: ({ entitlement }) => `set license_key / GATEWAY_LICENSE_KEY to a licence that includes ${entitlement}`,
  }),
  metrics_no_backend: row<Plugin & { selected?: string | undefined }>({
    message: ({ selected }) => (selected ? `the selected metrics backend is ${selected}` : 'no metrics backend is selected'),
    fix: ({ name }) => `set metrics.metrics_backend to ${name} (--metrics-backend=${name}, GATEWAY_METRICS_BACKEND=${name})`,
  }),
  metrics_off: row<Plugin & { origin?: string | undefined }>({
    message: ({ origin }) => `metrics.enabled is false${origin ? ` (from ${origin})` : ''}`,
    fix: () => 'set metrics.enabled to true (--metrics-enabled, GATEWAY_METRICS_ENABLED=true)',
  }),
  metrics_closed: row<Plugin & { gates: readonly { readonly reason: string; readonly fix: string }[] }>({
    message: ({ gates }) => `${gates.length} gates are closed: ${gates.map(({ reason }) => reason).join(', ')}`,
    fix: ({ gates }) => gates.map(({ fix }) => fix).join(', and '),
  }),
  plugin_settings: row<Plugin & { problems: readonly Problem[] }>({
    message: ({ problems }) => `its settings are wrong: ${problems.map(({ sentence }) => sentence).join('; ')}`,
    fix: () => 'correct each where it is set',
  }),
  plugin_import: row<Plugin & { module: string; reason: string }>({
    message: ({ module, reason }) => `importing ${module} failed: ${reason}`,
    fix: () => 'reinstall the plugin; if the error persists, report it to its author',
  }),
  plugin_start: row<Plugin & { reason: string; fix: string }>({
    message: ({ reason }) => `it failed to start: ${reason}`,
    fix: ({ fix }) => fix,
  }),
  plugin_second_tracer: row<Plugin & { active: string }>({
    message: ({ name, active }) =>
      `the tracer ${active} is already active in this process, which can have only one; ${name} was not started`,
    fix: () => 'set tracer.type (--tracer-type, GATEWAY_TRACER_PROVIDER) to one tracer',
  }),
} as const;
