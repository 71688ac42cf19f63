/**
 * Version of the contracts in this package, by semver: an export, member or value that goes or changes raises the major version, an addition the minor. The `api` range of a manifest is checked against it before anything is imported.
 */
export const API_VERSION = '2.0.0';

export type PluginKind = 'source' | 'tracer' | 'metrics';

/** The `gateway` object of a plugin's package.json. */
export interface PackageManifest {
  /** Semver range of the plugin API that the package is written for. */
  readonly api: string;
  readonly plugins: readonly PluginManifest[];
}

export interface PluginManifest {
  readonly kind: PluginKind;
  /** The value users write: `kafka` in a source record, `otel` in `tracer.type`, `pullmetrics` in `metrics.metrics_backend`. */
  readonly name: string;
  /** ESM module whose default export is the plugin, relative to the package. */
  readonly module: string;
  /** JSON file with rows for the settings table (`{ "<key>": { type, default?, env?, flag?, secret?, options?, summary } }`). */
  readonly settings?: string;
  /**
   * Sources: JSON file with the JSON Schema of the connection. String fields with `"x-secret": true` are sealed at rest and masked; fields with
   * `"x-address": true` say where they are sent.
   */
  readonly connection?: string;
  /** The feature flag that must be on; declared with `flags`. */
  readonly featureFlag?: string;
  /** Feature flags that this plugin declares. */
  readonly flags?: Readonly<Record<string, { readonly summary: string; readonly stability: 'experimental' | 'beta' | 'stable' }>>;
  /** ESM module whose default export is the rig of the conformance suite, for `gateway plugins test`; need not be published. */
  readonly conformance?: string;
  /** The licence entitlement that is required. */
  readonly entitlement?: string;
}
