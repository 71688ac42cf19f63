import { type Metrics, type MetricsPlugin, type PluginManifest, type SourcePlugin, type TracerPlugin } from '@gateway/plugin';
import { settingsAt, type Resolved } from '../config/config.js';
import type { Discovery } from './discovery.js';
import { GatewayError, isGatewayError } from '../errors/errors.js';
import { importPlugin } from './import-plugin.js';
import type { Licence } from './licence.js';
import type { Log } from '../logging/log.js';
import type { InstalledPlugin } from './manifest.js';
import { createMeter, type Meter } from '../metrics/meter.js';
import { createCollectors, type Collectors } from '../metrics/collectors.js';
import { pluginState, previewPlugins, type PluginState } from './plugin-table.js';
import { series } from '../metrics/series.js';
import { VERSION } from '../process/version.js';
import { withTimeout } from '../process/with-timeout.js';

export interface ActiveSource {
  readonly manifest: PluginManifest;
  readonly connectionSchema: Readonly<Record<string, unknown>>;
  /** The plugin's own settings, for its contexts. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Imports the plugin, once. Throws `plugin_import`. */
  load(): Promise<SourcePlugin>;
}

export interface ActivatedPlugins {
  readonly sources: ReadonlyMap<string, ActiveSource>;
  readonly tracer?: { readonly name: string; close(): Promise<void> };
  readonly metrics?: { readonly name: string; readonly sampleTimeSeconds: number };
  /** Records and exposes series; without a metrics plugin it does nothing, and `/metrics` says why in a comment line. */
  readonly meter: Meter;
  readonly table: readonly PluginState[];
  /** Flushes and closes the tracer and the metrics backend. */
  close(): Promise<void>;
}

export interface ActivationOptions {
  readonly discovery: Discovery;
  readonly resolved: Resolved;
  readonly licence: Licence;
  /** Name of the process for tracers: `gateway-server`, `gateway-agent`. */
  readonly serviceName: string;
  readonly log: Log;
}

const SAMPLE_TIME_SECONDS = 5;
/** How long closing waits for a backend that pushes. */
const CLOSE_METRICS_MS = 3_000;

/** The backend that explanations name if none is selected. */
const PULLMETRICS = 'pullmetrics';

/** The one tracer of this process: a second one would silently receive nothing. */
let activeTracer: string | undefined;

/**
 * Starts the plugins that `previewPlugins` calls active. A plugin that cannot be imported or started becomes inactive with its reason and
 * stops nothing else. Sources are imported when they are first used.
 */
export async function activate(options: ActivationOptions): Promise<ActivatedPlugins> {
  const { discovery, resolved, log } = options;
  const sources = new Map<string, ActiveSource>();
  const collectors = createCollectors(log);
  const table = previewPlugins(options);
  let tracer: ActivatedPlugins['tracer'];
  let metrics: ActivatedPlugins['metrics'];
  let backend: Metrics | undefined;

  for (const [i, plugin] of discovery.plugins.entries()) {
    const at = discovery.refused.length + i;
    if (table[at]?.state !== 'active') continue;
    const fail = (error: GatewayError) => void (table[at] = pluginState(plugin, error));
    try {
      switch (plugin.kind) {
        case 'source':
          sources.set(plugin.name, lazySource(plugin, options, fail));
          break;
        case 'tracer':
          tracer = await startTracer(plugin, options);
          break;
        case 'metrics':
          backend = await startMetrics(plugin, options, collectors);
          metrics = { name: plugin.name, sampleTimeSeconds: sampleTimeOf(plugin, options) };
          break;
      }
    } catch (error) {
      const known = isGatewayError(error) ? error : startFailed(plugin, error);
      log.error({ plugin: plugin.name, kind: plugin.kind, error: known }, 'A plugin could not be activated.');
      fail(known);
    }
  }
  const meter = createMeter(backend, {
    absence: backend ? '' : whyNoMetrics(table, options),
    labelSetsMax: resolved.config.metrics.max_label_sets,
    collectors,
  });
  const close = async () => {
    const flushed = closeMetrics(backend, collectors, log);
    try {
      await tracer?.close();
    } finally {
      await flushed;
    }
  };
  return { sources, ...(tracer ? { tracer } : {}), ...(metrics ? { metrics } : {}), meter, table, close };
}

/** Lets a backend that pushes send its last values, for a few seconds at most. Never rejects. */
async function closeMetrics(backend: Metrics | undefined, collectors: Collectors, log: Log): Promise<void> {
  if (!backend?.close) return;
  try {
    await collectors.run();
    await withTimeout(backend.close(), CLOSE_METRICS_MS, `it was not done after ${CLOSE_METRICS_MS} ms`);
  } catch (error) {
    log.warn({ error }, 'The metrics backend could not send its last values.');
  }
}

function lazySource(plugin: InstalledPlugin, { resolved }: ActivationOptions, failed: (error: GatewayError) => void): ActiveSource {
  let loading: Promise<SourcePlugin> | undefined;
  return {
    manifest: plugin.manifest,
    connectionSchema: plugin.connectionSchema ?? {},
    settings: settingsAt(resolved.config, plugin.home),
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
    const started = await tracer.start(settingsAt(resolved.config, home), {
      serviceName,
      serviceVersion: VERSION,
      environment: resolved.config.env,
      log,
    });
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

async function startMetrics(plugin: InstalledPlugin, { resolved, log }: ActivationOptions, collectors: Collectors): Promise<Metrics> {
  const metrics = await importPlugin<MetricsPlugin>(plugin, ['start']);
  return metrics.start(series, settingsAt(resolved.config, plugin.home), { collect: () => collectors.run(), log });
}

/** Seconds between samples of the gauges: the backend's setting `sample_time`, if it has one. */
function sampleTimeOf({ home }: InstalledPlugin, { resolved }: ActivationOptions): number {
  const { sample_time: seconds } = settingsAt(resolved.config, home);
  return typeof seconds === 'number' ? seconds : SAMPLE_TIME_SECONDS;
}

function startFailed({ kind, name }: InstalledPlugin, error: unknown): GatewayError {
  const { message = String(error), fix = 'check its settings with `gateway config`' } = error as { message?: string; fix?: string };
  return new GatewayError('plugin_start', { kind, name, reason: message.replace(/\.$/, ''), fix }, { cause: error });
}

/** Names every closed gate with its fix. */
function whyNoMetrics(table: readonly PluginState[], { resolved }: ActivationOptions): string {
  const { metrics_backend: backend } = resolved.config.metrics;
  const backends = table.filter(({ kind }) => kind === 'metrics');
  const row = backends.find(({ name }) => name === (backend ?? PULLMETRICS)) ?? backends[0];
  if (!row) return 'no metrics backend is selected; set metrics.metrics_backend (--metrics-backend, GATEWAY_METRICS_BACKEND)';
  return `${row.name} is inactive: ${[row.reason, row.fix].filter(Boolean).join('; ')}`;
}
