import {
  settles,
  type Metrics,
  type MetricsPlugin,
  type PluginManifest,
  type SourcePlugin,
  type TracerPlugin,
} from '@gateway/plugin';
import { settingsAt } from '../config/config.js';
import { GatewayError, isGatewayError } from '../errors/errors.js';
import type { sourceGuard } from '../http/ssrf-guard.js';
import type { Log } from '../logging/log.js';
import { createMeter, type Meter, createCollectors, type Collectors } from '../metrics/meter.js';
import { series } from '../metrics/series.js';
import { VERSION } from '../process/version.js';
import { withTimeout } from '../process/timing.js';
import { guardedCodec, type GuardedCodec } from './guarded-codec.js';
import { guardedMetrics } from './guarded-metrics.js';
import { guardedPush, type GuardedPush } from './guarded-push.js';
import { guardedSource } from './guarded-source.js';
import { importPlugin, PLUGIN_DEADLINE_MS } from './import-plugin.js';
import { isOurs, type InstalledPlugin } from './manifest.js';
import { asCore, asPlugin, readableError } from './plugin-faults.js';
import { pluginState, previewPlugins, type PluginGates, type PluginState } from './plugin-table.js';

export interface ActiveSource<Plugin = SourcePlugin> {
  readonly manifest: PluginManifest;
  readonly connectionSchema: Readonly<Record<string, unknown>>;
  readonly settings: Readonly<Record<string, unknown>>;
  /**
   * Imports once, adds defaults of the schema to connections, and restricts the plugin to
   * `source.allowed_networks`.
   * @throws GatewayError `plugin_import`
   */
  load(): Promise<Plugin>;
}

export type ActivePush = ActiveSource<GuardedPush>;
export type ActiveCodec = ActiveSource<GuardedCodec>;

export interface ActivatedPlugins {
  readonly sources: ReadonlyMap<string, ActiveSource>;
  /** The sources that agents do not run, because they take requests. */
  readonly pushSources: ReadonlyMap<string, ActivePush>;
  readonly codecs: ReadonlyMap<string, ActiveCodec>;
  readonly tracer?: { readonly name: string; close(): Promise<void> };
  readonly metrics?: { readonly name: string; readonly sampleTimeSeconds: number };
  /** Without a metrics plugin, it records nothing, and `/metrics` gives the reason in a comment. */
  readonly meter: Meter;
  readonly table: readonly PluginState[];
  readonly gates: PluginGates;
  close(): Promise<void>;
}

interface ActivationOptions extends PluginGates {
  readonly serviceName: string;
  readonly log: Log;
  /** For importing a plugin, and separately for starting it. */
  readonly deadlineMs?: number;
}

/** For a backend without a `sample_time` setting. */
const SAMPLE_TIME_SECONDS = 5;
const CLOSE_MS = 3_000;
const CLOSE_TRACER_MS = 6_000;

const PULLMETRICS = 'pullmetrics';

/** Only one tracer is allowed, because a second one would silently receive nothing. */
let activeTracer: string | undefined;

/** A plugin that fails becomes inactive, with the reason. */
export async function activate(options: ActivationOptions): Promise<ActivatedPlugins> {
  const { discovery, resolved, licence, log, deadlineMs = PLUGIN_DEADLINE_MS } = options;
  const gates = { discovery, resolved, licence };
  const sources = new Map<string, ActiveSource>();
  const pushSources = new Map<string, ActivePush>();
  const codecs = new Map<string, ActiveCodec>();
  const collectors = createCollectors(log);
  const table = previewPlugins(options);
  const { allowed_networks: allowedNetworks } = resolved.config.source;
  let tracer: ActivatedPlugins['tracer'];
  let metrics: ActivatedPlugins['metrics'];
  let backend: Metrics | undefined;
  const importing: Promise<unknown>[] = [];

  for (const [i, plugin] of discovery.plugins.entries()) {
    const at = discovery.refused.length + i;
    if (table[at]?.state !== 'active') continue;
    const tell = (error?: GatewayError) => void (table[at] = pluginState(plugin, error));
    try {
      const own = settingsAt(resolved.config, plugin.home);
      if (plugin.kind === 'source') {
        const failed = failing(log, plugin, 'A source plugin failed; the request got 503.');
        const loading = { settings: own, deadlineMs, tell, failed, allowedNetworks };
        const isPush = plugin.manifest.sourceKind === 'push';
        if (isPush) pushSources.set(plugin.name, lazySource(plugin, loading, guardedPush));
        else sources.set(plugin.name, lazySource(plugin, loading, guardedSource));
        // Built-in sources are imported on first use, because their clients are large.
        if (!isOurs(plugin))
          importing.push((isPush ? pushSources : sources).get(plugin.name)!.load());
      } else if (plugin.kind === 'codec') {
        const failed = failing(log, plugin, 'A codec failed.');
        const loading = { settings: own, deadlineMs, tell, failed, allowedNetworks };
        const codec = lazySource(plugin, loading, guardedCodec);
        codecs.set(plugin.name, codec);
        if (!isOurs(plugin)) importing.push(codec.load());
      } else if (plugin.kind === 'tracer')
        tracer = await startTracer(plugin, own, { ...options, deadlineMs });
      else {
        const imported = await importPlugin<MetricsPlugin>(plugin, deadlineMs);
        const failed = failing(log, plugin, 'A metrics backend failed; values are missing.');
        const host = { collect: () => asCore(() => collectors.run()), log };
        const started = await inTime(
          () => asPlugin(failed, () => imported.start(series, own, host)),
          deadlineMs,
        );
        backend = guardedMetrics(started, failed);
        metrics = {
          name: plugin.name,
          sampleTimeSeconds: Math.max(1, Number(own['sample_time'])) || SAMPLE_TIME_SECONDS,
        };
      }
    } catch (thrown) {
      const error = readableError(thrown);
      const known = isGatewayError(error) ? error : startFailed(error);
      log.error(
        { plugin: plugin.name, kind: plugin.kind, error: known },
        'Could not activate a plugin.',
      );
      tell(known);
    }
  }
  await Promise.allSettled(importing);
  const meter = createMeter(backend, {
    absence: backend ? '' : whyNoMetrics(table, options),
    labelSetsMax: resolved.config.metrics.max_label_sets,
    collectors,
  });
  const close = async () => {
    const flushed = closeMetrics(backend, collectors, log);
    await (tracer?.close() ?? Promise.resolve()).finally(() => flushed);
  };
  return {
    sources,
    pushSources,
    codecs,
    ...(tracer ? { tracer } : {}),
    ...(metrics ? { metrics } : {}),
    meter,
    table,
    gates,
    close,
  };
}

/** A backend that pushes sends its last values first. Never rejects. */
async function closeMetrics(
  backend: Metrics | undefined,
  collectors: Collectors,
  log: Log,
): Promise<void> {
  if (!backend?.close) return;
  try {
    await collectors.run();
    await withTimeout(backend.close(), CLOSE_MS, `it did not finish within ${CLOSE_MS} ms`);
  } catch (error) {
    log.warn({ error }, 'The metrics backend could not send its last values.');
  }
}

interface Loading {
  readonly settings: ActiveSource['settings'];
  readonly deadlineMs: number;
  readonly allowedNetworks: readonly string[];
  readonly failed: (error: unknown) => void;
  /** Receives an import error, or nothing once a later import succeeds. */
  readonly tell: (error?: GatewayError) => void;
}

function lazySource<Imported, Guarded>(
  plugin: InstalledPlugin,
  { deadlineMs, tell, allowedNetworks, ...given }: Loading,
  guarded: (
    imported: Imported,
    plugin: InstalledPlugin,
    guarding: Pick<Loading, 'settings' | 'failed'> & { guard: ReturnType<typeof sourceGuard> },
  ) => Guarded,
): ActiveSource<Guarded> {
  const { manifest, connectionSchema = {} } = plugin;
  let loading: Promise<Guarded> | undefined;
  const load = async () => {
    loading ??= importPlugin<Imported>(plugin, deadlineMs).then(async (imported) => {
      // Import the guard, and with it the HTTP client, only when the first source is loaded.
      const { sourceGuard: open } = await import('../http/ssrf-guard.js');
      return guarded(imported, plugin, { ...given, guard: open(allowedNetworks) });
    });
    try {
      const loaded = await loading;
      tell();
      return loaded;
    } catch (error) {
      // Let the next call retry, because a slow import may have finished by then. A failed import
      // fails again, because Node.js caches it.
      loading = undefined;
      tell(error as GatewayError);
      throw error;
    }
  };
  return { manifest, connectionSchema, settings: given.settings, load };
}

async function startTracer(
  plugin: InstalledPlugin,
  settings: ActiveSource['settings'],
  { resolved, serviceName, log, deadlineMs }: Required<ActivationOptions>,
) {
  const { name } = plugin;
  if (activeTracer) throw new GatewayError('plugin_second_tracer', { name, active: activeTracer });
  activeTracer = name;
  try {
    const tracer = await importPlugin<TracerPlugin>(plugin, deadlineMs);
    const context = { serviceName, serviceVersion: VERSION, environment: resolved.config.env, log };
    const failed = failing(log, plugin, 'A tracer failed; spans are lost.');
    const started = await inTime(
      () => asPlugin(failed, () => tracer.start(settings, context)),
      deadlineMs,
    );
    // Imported here, so that listings of plugins do not load OpenTelemetry.
    const { guardTracer } = await import('../tracing/spans.js');
    guardTracer((work) => asPlugin(failed, work), failed);
    const close = async () => {
      activeTracer = undefined;
      const closing = asPlugin(failed, async () => started.close());
      await withTimeout(closing, CLOSE_TRACER_MS, 'it was not closed in time').catch(failed);
    };
    return { name, close };
  } catch (error) {
    activeTracer = undefined;
    throw error;
  }
}

/**
 * One that starts too late is closed.
 * @throws GatewayError `plugin_start`
 */
async function inTime<Started extends { close?(): Promise<void> }>(
  start: () => Promise<Started>,
  deadlineMs: number,
): Promise<Started> {
  const starting = (async () => start())();
  if (await settles(starting, deadlineMs)) return starting;
  void starting.then((late) => late.close?.()).catch(() => undefined);
  const fix =
    'check its settings with `gateway config`, and that the service it connects to responds; otherwise report it to its author';
  throw new GatewayError('plugin_start', {
    reason: `it did not start within ${deadlineMs / 1000} s`,
    fix,
  });
}

const LOG_EVERY_MS = 60_000;
const ERRORS_MAX = 10;

/** Logs each error of a running plugin once a minute. */
function failing(log: Log, { name, package: from }: InstalledPlugin, sentence: string) {
  let logged = new Set<string>();
  let sinceMs = -Infinity;
  return (thrown: unknown): void => {
    const error = readableError(thrown);
    if (performance.now() - sinceMs > LOG_EVERY_MS)
      [logged, sinceMs] = [new Set(), performance.now()];
    if (logged.has(error.message) || logged.size >= ERRORS_MAX) return;
    logged.add(error.message);
    log.error({ plugin: name, package: from, error }, sentence);
  };
}

function startFailed(error: Error & { readonly fix?: string }): GatewayError {
  const { message, fix = 'check its settings with `gateway config`' } = error;
  return new GatewayError(
    'plugin_start',
    { reason: message.replace(/\.$/, ''), fix },
    { cause: error },
  );
}

function whyNoMetrics(table: readonly PluginState[], { resolved }: ActivationOptions): string {
  const { metrics_backend: backend } = resolved.config.metrics;
  const backends = table.filter(({ kind }) => kind === 'metrics');
  const row = backends.find(({ name }) => name === (backend ?? PULLMETRICS)) ?? backends[0];
  if (!row)
    return 'no metrics backend is selected; set metrics.metrics_backend (--metrics-backend, GATEWAY_METRICS_BACKEND)';
  return `${row.name} is inactive: ${[row.reason, row.fix].filter(Boolean).join('; ')}`;
}
