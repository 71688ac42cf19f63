/** One row of the table of settings: types, precedence, validation, flags, help, redaction and the reference page come from it. */
export interface Setting {
  readonly type: 'integer' | 'number' | 'boolean' | 'string' | 'list';
  readonly default?: number | boolean | string | readonly string[];
  /** Environment variable; without one it is GATEWAY_ and the key in upper case, with underscores for dots and dashes. */
  readonly env?: string;
  readonly flag?: string;
  /** Commands that take the flag; without it every command does. */
  readonly on?: readonly string[];
  /** A second flag of the same setting. */
  readonly alias?: { readonly flag: string; readonly on: readonly string[] };
  /** Values of the flag that mean "not given": the setting then comes from elsewhere. */
  readonly flagUnset?: 'negative' | 'zero';
  readonly options?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  /**
   * What each text has to look like: a network, an http(s) URL, `host:port`, `host:port` with a scheme or without, a DSN of Sentry, a path prefix, an
   * e-mail address.
   */
  readonly format?: 'cidr' | 'url' | 'address' | 'target' | 'dsn' | 'prefix' | 'email';
  readonly secret?: boolean;
  readonly summary: string;
  /** What an option is called in errors: `feature flag`. */
  readonly noun?: string;
  /** A setting of a plugin that the plugin cannot do without. */
  readonly required?: boolean;
  /** The plugin that brought the row, for a person; none for the gateway's own. */
  readonly owner?: string;
  /** The setting is gone; the sentence says what replaced it. */
  readonly withdrawn?: string;
}

export type SettingsTable = Readonly<Record<string, Setting>>;

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

/** The nested, typed value of a table of settings: what has no default may be missing. */
export type ConfigOf<Table> = Plain<
  Intersected<
    { [Key in keyof Table & string]: Table[Key] extends { withdrawn: string } ? never : Nested<Key, Table[Key]> }[keyof Table & string]
  >
>;

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
