import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type Metrics,
  type MetricsPlugin,
  type PluginKind,
  type PluginManifest,
  type SourcePlugin,
  type TracerPlugin,
} from '@gateway/plugin';
import { refusalOf } from './admission.js';
import { settingsAt, type Resolved } from './config.js';
import type { Discovery } from './discovery.js';
import { GatewayError, isGatewayError } from './errors.js';
import type { Licence } from './licence.js';
import type { Log } from './log.js';
import type { InstalledPlugin } from './manifest.js';
import { createMeter, type Meter } from './meter.js';
import { series } from './series.js';
import { didYouMean } from './suggest.js';
import { VERSION } from './version.js';

/** A row of the table of plugins. */
export interface PluginState {
  readonly name: string;
  readonly kind: PluginKind | 'unknown';
  readonly version: string;
  readonly from: string;
  readonly state: 'active' | 'inactive';
  /** Why it is inactive. */
  readonly reason?: string;
  readonly fix?: string;
}

export interface ActiveSource {
  readonly manifest: PluginManifest;
  readonly connectionSchema: Readonly<Record<string, unknown>>;
  /** Imports the plugin, once. Throws `plugin_import`. */
  load(): Promise<SourcePlugin>;
}

/** What a process may use of its plugins. */
export interface ActivatedPlugins {
  readonly sources: ReadonlyMap<string, ActiveSource>;
  readonly tracer?: { readonly name: string; close(): Promise<void> };
  readonly metrics?: { readonly name: string; readonly sampleTimeSeconds: number };
  /** Where series are counted and exposed; without a metrics plugin it does nothing, and `/metrics` says why in a comment line. */
  readonly meter: Meter;
  readonly table: readonly PluginState[];
  /** Flushes and closes the tracer. */
  close(): Promise<void>;
}

export interface ActivationOptions {
  readonly discovery: Discovery;
  readonly resolved: Resolved;
  readonly licence: Licence;
  /** What tracers call this process: `gateway-server`, `gateway-agent`. */
  readonly serviceName: string;
  readonly log: Log;
}

const SAMPLE_TIME_SECONDS = 5;

/** The one tracer of this process: a second provider would silently receive nothing. */
let activeTracer: string | undefined;

/**
 * Decides for each plugin whether it becomes active, in this order: API range, selected by configuration, feature flag, licence, settings,
 * import and start. A refusal is a row with its reason and stops nothing else. Sources are imported when they are first used.
 */
export async function activate(options: ActivationOptions): Promise<ActivatedPlugins> {
  const { discovery, resolved, licence, log } = options;
  const sources = new Map<string, ActiveSource>();
  const table: PluginState[] = discovery.refused.map((it) => rowOf({ ...it, kind: it.kind ?? 'unknown' }, it.error));
  let tracer: ActivatedPlugins['tracer'];
  let metrics: ActivatedPlugins['metrics'];
  let backend: Metrics | undefined;

  for (const plugin of discovery.plugins) {
    const refuse = (error: GatewayError) => table.push(rowOf(plugin, error));
    const refusal = refusalOf(plugin, resolved, licence);
    if (refusal) {
      refuse(refusal);
      continue;
    }
    try {
      switch (plugin.kind) {
        case 'source': {
          const at = table.length;
          sources.set(
            plugin.name,
            lazySource(plugin, (error) => (table[at] = rowOf(plugin, error))),
          );
          break;
        }
        case 'tracer':
          tracer = await startTracer(plugin, options);
          break;
        case 'metrics':
          backend = await startMetrics(plugin, options);
          metrics = { name: plugin.name, sampleTimeSeconds: sampleTimeOf(plugin, options) };
          break;
      }
      table.push(rowOf(plugin));
    } catch (error) {
      const known = isGatewayError(error) ? error : startFailed(plugin, error);
      log.error({ plugin: plugin.name, kind: plugin.kind, error: known }, 'A plugin could not be activated.');
      refuse(known);
    }
  }
  for (const missing of missingPlugins(options)) table.push(missing);
  const meter = createMeter(backend, {
    absence: backend ? '' : whyNoMetrics(table, options),
    labelSetsMax: resolved.config.metrics.max_label_sets,
  });
  return { sources, ...(tracer ? { tracer } : {}), ...(metrics ? { metrics } : {}), meter, table, close: async () => tracer?.close() };
}

function lazySource(plugin: InstalledPlugin, failed: (error: GatewayError) => void): ActiveSource {
  let loading: Promise<SourcePlugin> | undefined;
  return {
    manifest: plugin.manifest,
    connectionSchema: plugin.connectionSchema ?? {},
    load: () =>
      (loading ??= importPlugin<SourcePlugin>(plugin, ['check', 'run']).catch((error: GatewayError) => {
        failed(error);
        throw error;
      })),
  };
}

async function startTracer(
  plugin: InstalledPlugin,
  { resolved, serviceName, log }: ActivationOptions,
): Promise<NonNullable<ActivatedPlugins['tracer']>> {
  const { kind, name, home } = plugin;
  if (activeTracer) throw new GatewayError('plugin_second_tracer', { kind, name, active: activeTracer });
  activeTracer = name;
  try {
    const tracer = await importPlugin<TracerPlugin>(plugin, ['start']);
    const started = await tracer.start(settingsAt(resolved.config, home), { serviceName, serviceVersion: VERSION, log });
    return {
      name,
      close: async () => {
        activeTracer = undefined;
        await started.close();
      },
    };
  } catch (error) {
    activeTracer = undefined;
    throw error;
  }
}

async function startMetrics(plugin: InstalledPlugin, { resolved }: ActivationOptions): Promise<Metrics> {
  const metrics = await importPlugin<MetricsPlugin>(plugin, ['start']);
  return metrics.start(series, settingsAt(resolved.config, plugin.home));
}

/** Seconds between samples of the gauges: `sample_time` of the backend's own settings, when it has that. */
function sampleTimeOf({ home }: InstalledPlugin, { resolved }: ActivationOptions): number {
  const { sample_time: seconds } = settingsAt(resolved.config, home);
  return typeof seconds === 'number' ? seconds : SAMPLE_TIME_SECONDS;
}

async function importPlugin<Plugin>(plugin: InstalledPlugin, functions: readonly string[]): Promise<Plugin> {
  const { kind, name, manifest, folder } = plugin;
  const modulePath = `${plugin.package}/${manifest.module.replace(/^\.\//, '')}`;
  const refused = (reason: string, cause?: unknown) =>
    new GatewayError('plugin_import', { kind, name, module: modulePath, reason }, { cause });
  let module: { default?: Record<string, unknown> };
  try {
    module = (await import(pathToFileURL(join(folder, manifest.module)).href)) as typeof module;
  } catch (cause) {
    throw refused(cause instanceof Error ? cause.message : String(cause), cause);
  }
  const missing = functions.find((it) => typeof module.default?.[it] !== 'function');
  if (missing) throw refused(`its default export has no function ${missing}`);
  return module.default as Plugin;
}

function startFailed({ kind, name }: InstalledPlugin, error: unknown): GatewayError {
  const { message = String(error), fix = 'check its settings with `gateway config`' } = error as { message?: string; fix?: string };
  return new GatewayError('plugin_start', { kind, name, reason: message, fix }, { cause: error });
}

function rowOf(it: { name: string; kind: PluginState['kind']; version: string; from: string }, error?: GatewayError): PluginState {
  const { name, kind, version, from } = it;
  return { name, kind, version, from, state: error ? 'inactive' : 'active', ...(error ? { reason: error.message, fix: error.fix } : {}) };
}

/** Plugins that the configuration selects and nobody installed. */
function missingPlugins({ discovery, resolved }: ActivationOptions): PluginState[] {
  const { tracer, metrics } = resolved.config;
  const wanted = [
    { kind: 'tracer', name: tracer.type, setting: 'tracer.type (--tracer-type, GATEWAY_TRACER_PROVIDER)' },
    { kind: 'metrics', name: metrics.metrics_backend, setting: 'metrics.metrics_backend (--metrics-backend, GATEWAY_METRICS_BACKEND)' },
  ] as const;
  return wanted.flatMap(({ kind, name, setting }) => {
    const installed = [...discovery.plugins, ...discovery.refused].filter((it) => it.kind === kind).map((it) => it.name);
    if (!name || installed.includes(name)) return [];
    const error = new GatewayError('plugin_missing', { kind, name, setting, hint: didYouMean(name, installed) });
    return [rowOf({ name, kind, version: '', from: '' }, error)];
  });
}

function whyNoMetrics(table: readonly PluginState[], { resolved }: ActivationOptions): string {
  const { metrics_backend: backend } = resolved.config.metrics;
  if (!backend) return 'no metrics backend is selected; set metrics.metrics_backend (--metrics-backend, GATEWAY_METRICS_BACKEND)';
  const row = table.find(({ kind, name }) => kind === 'metrics' && name === backend);
  return `${backend} is inactive: ${[row?.reason, row?.fix].filter(Boolean).join('; ')}`;
}
