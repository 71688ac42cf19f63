/**
 * The Semver version of the plugin contracts. Removing or changing an export, a member or a value
 * is a major change; adding one is minor. Checked against a manifest's `api` before any import.
 */
export const API_VERSION = '2.0.0';

export type PluginKind = 'source' | 'codec' | 'tracer' | 'metrics';

/** The `gateway` object of a plugin's package.json. */
export interface PackageManifest {
  /** The Semver range of supported plugin API versions. */
  readonly api: string;
  readonly plugins: readonly PluginManifest[];
}

export interface PluginManifest {
  readonly kind: PluginKind;
  /**
   * For sources: `pull` reads a broker (`SourcePlugin`), `push` takes requests to a URL
   * (`PushSourcePlugin`). Default: `pull`.
   */
  readonly sourceKind?: 'pull' | 'push';
  /**
   * The name that users write: `kafka` in a source, `avro` in its `codec`, `otel` in `tracer.type`,
   * `pullmetrics` in `metrics.metrics_backend`.
   */
  readonly name: string;
  /** The ESM module whose default export is the plugin. */
  readonly module: string;
  /**
   * A JSON file with rows for the settings table: `{ "<key>": { type, default?, env?, flag?,
   * secret?, options?, summary } }`.
   */
  readonly settings?: string;
  /**
   * A JSON file with the JSON Schema of the connection of a source, or of the settings of a codec,
   * and for no other kind. `"x-secret": true` marks strings to seal and mask; `"x-address": true` marks the fields that determine where these
   * strings are sent.
   */
  readonly connection?: string;
  /** The feature flag, declared in `flags`, that must be enabled to use the plugin. */
  readonly featureFlag?: string;
  /** Feature flags declared by this plugin, by name. */
  readonly flags?: Readonly<
    Record<
      string,
      { readonly summary: string; readonly stability: 'experimental' | 'beta' | 'stable' }
    >
  >;
  /**
   * The ESM module whose default export is the conformance rig for `gateway plugins test`. It need
   * not be published.
   */
  readonly conformance?: string;
  /** The licence entitlement that the plugin requires. */
  readonly entitlement?: string;
}
