import type { SettingProblem } from '../errors/error-row.js';
import { envOf, flagsOf, type Setting, type SettingsTable } from './settings.js';

export type Environment = Readonly<Record<string, string | undefined>>;

export type FlagValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface FoundProblem extends SettingProblem {
  /** The file keys that the sentence mentions. Undefined if `key` is the only one. */
  readonly places?: readonly string[];
  readonly from: 'flag' | 'env' | 'file';
}

/** A value given for a setting, and where it was given. */
export interface GivenValue {
  readonly value: unknown;
  readonly origin: string;
  readonly from: FoundProblem['from'];
  readonly place: string;
}

export function flagValue(
  key: string,
  row: Setting,
  command: string,
  flags: FlagValues,
): GivenValue | undefined {
  for (const flag of flagsOf(row, command)) {
    const value = flags[flag];
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    if (row.flagUnset === 'negative' && Number(value) < 0) continue;
    if (row.flagUnset === 'zero' && value !== '' && Number(value) === 0) continue;
    return { value, origin: `--${flag}`, from: 'flag', place: key };
  }
  return undefined;
}

/**
 * Treats an empty variable as unset, because Compose files may pass unset variables as empty
 * strings.
 */
export function envValue(key: string, row: Setting, env: Environment): GivenValue | undefined {
  const name = envOf(key, row);
  const value = env[name];
  return value && !isServiceLink(name, value)
    ? { value, origin: name, from: 'env', place: key }
    : undefined;
}

/**
 * Returns whether the variable is a Docker-style service link. Kubernetes sets one for every
 * service in the namespace, and its name may collide with a setting's variable:
 * https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
function isServiceLink(name: string, value: string): boolean {
  return name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\/\S+:\d+$/.test(value.trim());
}

export function serviceLinks(rows: SettingsTable, env: Environment): SettingProblem[] {
  return Object.entries(rows).flatMap(([key, row]) => {
    const name = envOf(key, row);
    const value = env[name] ?? '';
    if (!isServiceLink(name, value)) return [];
    const service = name.slice(0, -'_PORT'.length).toLowerCase().replaceAll('_', '-');
    const sentence = `${name}=${value} is ignored: Kubernetes sets it for the service ${service}; set enableServiceLinks to false in the pod, and ${name} to a number if you mean the setting ${key}`;
    return { key, origin: name, sentence };
  });
}
