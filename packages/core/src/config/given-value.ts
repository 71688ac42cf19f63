import { readFileSync } from 'node:fs';
import { fileReason } from '../errors/connection-errors.js';
import type { SettingProblem } from '../errors/error-row.js';
import { nearest } from '../errors/suggest.js';
import { envOf, flagsOf, wholeEnvOf, type Setting, type SettingsTable } from './settings.js';

export type Environment = Readonly<Record<string, string | undefined>>;

export type FlagValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface FoundProblem extends SettingProblem {
  /** The file keys that the sentence mentions. Undefined if `key` is the only one. */
  readonly places?: readonly string[];
  readonly from: 'flag' | 'env' | 'file';
}

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

/** An empty variable is unset, because Compose files may pass unset variables as empty strings. */
export function envValue(key: string, row: Setting, env: Environment): GivenValue | undefined {
  const name = envOf(key, row);
  const value = env[name];
  return value && !isServiceLink(name, value)
    ? { value, origin: name, from: 'env', place: key }
    : undefined;
}

/** Without the line break at its end. */
export function readSecretFile(path: string): string {
  return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
}

/** Every secret can be given as a file, unless a setting has the name of that variable. */
function fileVariable(key: string, row: Setting, rows: SettingsTable): string | undefined {
  return row.secret && row.withdrawn === undefined && !(`${key}_file` in rows)
    ? `${envOf(key, row)}_FILE`
    : undefined;
}

/** Secrets that this process has read, by variable. */
const secretFiles = new Map<string, { readonly path: string; readonly text: string }>();

/** Undefined without the variable, and a sentence if the file cannot be used. */
export function secretFileValue(
  key: string,
  row: Setting,
  rows: SettingsTable,
  env: Environment,
): GivenValue | { readonly origin: string; readonly wrong: string } | undefined {
  const origin = fileVariable(key, row, rows);
  const path = origin && env[origin];
  if (!path) return undefined;
  if (env[envOf(key, row)])
    return { origin, wrong: `${envOf(key, row)} and ${origin} are both set; set only one of them` };
  try {
    const text = readSecretFile(path);
    secretFiles.set(origin, { path, text });
    if (text === '') return { origin, wrong: `${origin} names ${path}, which is empty` };
    const value = row.type === 'list' ? text.split(/\s*\n\s*/) : text;
    return { value, origin, from: 'env', place: key };
  } catch (error) {
    return { origin, wrong: `${origin} names ${path}, which cannot be read: ${fileReason(error)}` };
  }
}

/** This process uses the former secrets until it is restarted. */
export function changedSecretFiles(): string[] {
  return [...secretFiles].flatMap(([variable, { path, text }]) => {
    try {
      return readSecretFile(path) === text ? [] : [variable];
    } catch {
      return [];
    }
  });
}

const PREFIX = /^GATEWAY_/;
/** For the docs and developers. */
const NO_SETTINGS = ['API_KEY', 'IMAGE', 'CITUS', 'PROOF_SEED'];
/** Kubernetes and Docker set these, as for a service called gateway or gateway-redis. */
const SERVICE_LINK =
  /_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$|_ENV_|_NAME$/;

/** One for each `GATEWAY_*` variable that is no setting. */
export function unknownVariables(rows: SettingsTable, env: Environment): SettingProblem[] {
  const known = new Map<string, string>();
  for (const [key, row] of Object.entries(rows))
    for (const name of [fileVariable(key, row, rows), envOf(key, row)])
      if (name) known.set(name, key);
  // The variable itself comes last, and is meant rather than that of a file.
  const byKey = new Map(Array.from(known, ([name, key]) => [wholeEnvOf(key), name]));
  return Object.entries(env).flatMap(([name, value = '']) => {
    const short = name.replace(PREFIX, '');
    if (short === name || known.has(name) || NO_SETTINGS.includes(short)) return [];
    if (SERVICE_LINK.test(name) || isServiceLink(name, value)) return [];
    const near = nearest(
      short,
      Array.from(known.keys(), (it) => it.replace(PREFIX, '')),
    );
    const meant =
      byKey.get(name) ?? [short, `GATEWAY_${near}`, near].find((it) => it && known.has(it));
    const sentence = `${name} is not a setting, so it is ignored${meant ? `; did you mean ${meant}?` : ''}`;
    return { key: name, origin: name, sentence };
  });
}

/**
 * Kubernetes sets one for every service in the namespace, and its name may collide with a setting's
 * variable: https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
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
