/** One setting: its type, validation, flags, help, redaction and the reference page come from this row. */
export interface Setting {
  readonly type: 'integer' | 'number' | 'boolean' | 'string' | 'list';
  readonly default?: number | boolean | string | readonly string[];
  /** Environment variable; by default GATEWAY_ and the key in upper case, with underscores for dots and dashes. */
  readonly env?: string;
  readonly flag?: string;
  /** Commands that take the flag; by default all. */
  readonly on?: readonly string[];
  /** A second flag of the same setting. */
  readonly alias?: { readonly flag: string; readonly on: readonly string[] };
  /** Values of the flag that count as not given. */
  readonly flagUnset?: 'negative' | 'zero';
  /** In any case. */
  readonly options?: readonly string[];
  /** The name of a plugin, which has no capitals: it may be given in any case. */
  readonly lowerCase?: true;
  readonly min?: number;
  readonly max?: number;
  /** `cidr`: a network; `address`: host:port; `target`: host:port with or without http(s)://; `dsn`: of Sentry; `prefix`: of a path. */
  readonly format?: 'cidr' | 'url' | 'address' | 'target' | 'dsn' | 'prefix' | 'email';
  readonly secret?: boolean;
  readonly summary: string;
  /** Name of an option in errors: `feature flag`. */
  readonly noun?: string;
  /** The plugin that declares the setting needs a value. */
  readonly required?: boolean;
  /** The plugin that declares the row, for a person. */
  readonly owner?: string;
  /** The setting was withdrawn; the sentence names its replacement. */
  readonly withdrawn?: string;
}

export type SettingsTable = Readonly<Record<string, Setting>>;

export interface FeatureFlag {
  readonly summary: string;
  readonly stability: 'experimental' | 'beta' | 'stable';
  /** The plugin package that declares it. */
  readonly declaredBy: string;
}

export type FlagTable = Readonly<Record<string, FeatureFlag>>;

/** The settings, with `enable_feature_flag` limited to these flags. */
export function withFlags(table: SettingsTable, flags: FlagTable): SettingsTable {
  const row = table['enable_feature_flag'];
  return row ? { ...table, enable_feature_flag: { ...row, options: Object.keys(flags).sort(), noun: 'feature flag' } } : table;
}

type Value<S> = S extends { type: 'list' }
  ? readonly string[]
  : S extends { options: readonly (infer Option)[] }
    ? Option
    : S extends { type: 'integer' | 'number' }
      ? number
      : S extends { type: 'boolean' }
        ? boolean
        : string;
type Nested<Key extends string, S> = Key extends `${infer Head}.${infer Tail}`
  ? { readonly [P in Head]: Nested<Tail, S> }
  : S extends { default: unknown }
    ? { readonly [P in Key]: Value<S> }
    : { readonly [P in Key]?: Value<S> };
type Intersected<Union> = (Union extends unknown ? (it: Union) => void : never) extends (it: infer All) => void ? All : never;
type Plain<T> = T extends readonly unknown[] ? T : T extends object ? { readonly [P in keyof T]: Plain<T[P]> } : T;

/** The nested, typed value of a table of settings; those without a default are optional. */
export type ConfigOf<Table> = Plain<
  Intersected<
    { [Key in keyof Table & string]: Table[Key] extends { withdrawn: string } ? never : Nested<Key, Table[Key]> }[keyof Table & string]
  >
>;

/** The value of a setting by its key, or the settings below a key. */
export function settingAt(config: object, key: string): unknown {
  return key.split('.').reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], config);
}

/** Name of the environment variable of a setting. */
export function envOf(key: string, setting: Setting): string {
  return setting.env ?? `GATEWAY_${key.toUpperCase().replaceAll(/[.-]/g, '_')}`;
}

/** The flags of a setting that a command takes. */
export function flagsOf(setting: Setting, command: string): string[] {
  const taken: string[] = [];
  if (setting.flag && (!setting.on || setting.on.includes(command))) taken.push(setting.flag);
  if (setting.alias?.on.includes(command)) taken.push(setting.alias.flag);
  return taken;
}
