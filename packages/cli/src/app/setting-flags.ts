import * as Flags from '@oclif/core/flags';
import type { FlagInput } from '@oclif/core/interfaces';
import { envOf, flagsOf, type Setting, type SettingsTable } from '@gateway/core/config';
import { installation } from './installation.js';

/** By the first part of the setting's key. */
const groupsByKey: Readonly<Record<string, string>> = {
  client: 'API',
  database: 'DATABASE',
  kv: 'KV',
  metrics: 'METRICS',
  tracer: 'TRACING',
  source: 'SOURCE',
  retention: 'RETENTION',
  billing: 'BILLING',
};
const REST = 'GLOBAL';

/** In display order. */
export const groups: readonly string[] = [REST, ...Object.values(groupsByKey)];

/**
 * No setting affects these commands. They accept the setting flags without listing them, so that a
 * wrapper script can pass the same flags to every command.
 */
const indifferent: readonly string[] = [
  'completion',
  'config:schema',
  'migrate:create',
  'plugins:create',
  'plugins:test',
  'version',
];

/** Flags for global settings are in help groups. */
export function settingFlags(
  command: string,
  rows: SettingsTable = installation().rows,
): FlagInput {
  const flags: FlagInput = {};
  for (const [key, row] of Object.entries(rows)) {
    if (row.withdrawn !== undefined) continue;
    for (const flag of flagsOf(row, command)) {
      const own =
        (flag === row.flag ? row.on : row.alias?.on) !== undefined && !key.startsWith('client.');
      const hidden = indifferent.includes(command);
      flags[flag] = settingFlag(key, row, {
        hidden,
        ...(own ? {} : { helpGroup: groupsByKey[key.split('.', 1)[0]!] ?? REST }),
      });
    }
  }
  flags['config'] = Flags.string({
    helpGroup: REST,
    helpValue: '<path>',
    summary: 'Configuration file. [default: ./gateway.json]',
  });
  return flags;
}

/**
 * A command's parser expects global flags after its words. Everything from the first other flag on
 * is unchanged.
 */
export function commandFirst(argv: readonly string[], rows: SettingsTable): string[] {
  const takesValue = new Map([['--config', true]]);
  for (const { flag, on, type, withdrawn } of Object.values(rows)) {
    if (flag === undefined || on !== undefined || withdrawn !== undefined) continue;
    takesValue.set(`--${flag}`, type !== 'boolean');
    if (type === 'boolean') takesValue.set(`--no-${flag}`, false);
  }
  const words: string[] = [];
  const flags: string[] = [];
  let at = 0;
  while (at < argv.length) {
    const word = argv[at]!;
    const [name = '', value] = word.split('=', 2);
    if (takesValue.has(name)) {
      const end = at + (takesValue.get(name) && value === undefined ? 2 : 1);
      flags.push(...argv.slice(at, end));
      at = end;
      continue;
    }
    if (word.startsWith('-')) break;
    words.push(word);
    at++;
  }
  return [...words, ...flags, ...argv.slice(at)];
}

/**
 * Does not validate the value: the settings table reports all mistakes with their origins in one
 * error.
 */
function settingFlag(
  key: string,
  row: Setting,
  place: { hidden: boolean; helpGroup?: string },
): FlagInput[string] {
  const shown = { ...place, summary: summaryOf(key, row) };
  if (row.type === 'boolean') return Flags.boolean({ ...shown, allowNo: true });
  if (row.type === 'list')
    return Flags.string({
      ...shown,
      multiple: true,
      multipleNonGreedy: true,
      helpValue: '<value>',
    });
  return Flags.string({
    ...shown,
    helpValue: row.type === 'string' ? (row.options?.join('|') ?? '<value>') : `<${row.type}>`,
  });
}

/**
 * For a command's help: the first sentence of a setting's summary, and the default. Other flags are
 * returned unchanged.
 */
export function firstSentence<Flag extends { summary?: string | undefined; helpValue?: unknown }>(
  flag: Flag,
): Flag {
  const [, sentence, standard] =
    /^(.*?\.)(?: .*)? \[(?:default: ([^\]]*), )?env: \w+\]$/.exec(flag.summary ?? '') ?? [];
  if (sentence === undefined) return flag;
  const { helpValue } = flag;
  const isLong = typeof helpValue === 'string' && helpValue.length > 20;
  return {
    ...flag,
    ...(isLong ? { helpValue: '<value>' } : {}),
    summary: standard === undefined ? sentence : `${sentence} [default: ${standard}]`,
  };
}

function summaryOf(key: string, row: Setting): string {
  const value =
    row.flagUnset === 'negative'
      ? `-1, which means ${String(row.default)}`
      : String(row.default ?? '');
  const known = value === '' || row.type === 'boolean' ? [] : [`default: ${value}`];
  return `${row.summary} [${[...known, `env: ${envOf(key, row)}`].join(', ')}]`;
}
