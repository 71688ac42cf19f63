/**
 * Semver version of these contracts: removing or changing an export, member or value is major,
 * adding one is minor. Checked against `api` of a manifest before any import.
 */
export const API_VERSION = '2.0.0';

export type PluginKind = 'source' | 'tracer' | 'metrics';

/** The `gateway` object of a plugin's package.json. */
export interface PackageManifest {
  /** Semver range of the plugin API. */
  readonly api: string;
  readonly plugins: readonly PluginManifest[];
}

export interface PluginManifest {
  readonly kind: PluginKind;
  /**
   * The name that users write: `kafka` in a source, `otel` in `tracer.type`, `pullmetrics` in
   * `metrics.metrics_backend`.
   */
  readonly name: string;
  /** ESM module in the package with the plugin as its default export. */
  readonly module: string;
  /**
   * JSON file with rows for the settings table (`{ "<key>": { type, default?, env?, flag?, secret?,
   * options?, summary } }`).
   */
  readonly settings?: string;
  /**
   * JSON file with the JSON Schema of the connection; sources only. `"x-secret": true` marks
   * strings to seal and mask, `"x-address": true` the fields that determine where they are sent.
   */
  readonly connection?: string;
  /** A flag that must be enabled; declared with `flags`. */
  readonly featureFlag?: string;
  /** Declared by this plugin. */
  readonly flags?: Readonly<
    Record<
      string,
      { readonly summary: string; readonly stability: 'experimental' | 'beta' | 'stable' }
    >
  >;
  /**
   * ESM module with the rig as its default export, for `gateway plugins test`; need not be
   * published.
   */
  readonly conformance?: string;
  /** The required licence entitlement. */
  readonly entitlement?: string;
}
