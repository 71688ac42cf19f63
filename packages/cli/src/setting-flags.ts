import * as Flags from '@oclif/core/flags';
import type { FlagInput } from '@oclif/core/interfaces';
import { envOf, flagsOf, type Setting, type SettingsTable } from '@gateway/core/settings';
import { installation } from './installation.js';

/** The flags that a command takes for its settings: those of its own, and the global ones. */
export function settingFlags(command: string, rows: SettingsTable = installation().rows): FlagInput {
  const flags: FlagInput = {};
  for (const [key, row] of Object.entries(rows)) {
    if (row.withdrawn !== undefined) continue;
    for (const flag of flagsOf(row, command)) {
      const own = (flag === row.flag ? row.on : row.alias?.on) !== undefined;
      flags[flag] = settingFlag(key, row, own);
    }
  }
  flags['config'] = Flags.string({ helpGroup: 'GLOBAL', helpValue: '<path>', summary: 'Configuration file. [default: ./gateway.json]' });
  return flags;
}

/** Values are checked by the table of settings and not by the parser, so that all mistakes are told at once with their origin. */
function settingFlag(key: string, row: Setting, own: boolean): FlagInput[string] {
  const shown = { summary: summaryOf(key, row), ...(own ? {} : { helpGroup: 'GLOBAL' }) };
  switch (row.type) {
    case 'boolean':
      return Flags.boolean({ ...shown, allowNo: true });
    case 'list':
      return Flags.string({ ...shown, multiple: true, multipleNonGreedy: true, helpValue: '<value>' });
    case 'integer':
    case 'number':
      return Flags.string({ ...shown, helpValue: `<${row.type}>` });
    case 'string':
      return Flags.string({ ...shown, helpValue: row.options ? row.options.join('|') : '<value>' });
  }
}

function summaryOf(key: string, row: Setting): string {
  const value = row.flagUnset === 'negative' ? `-1, which means ${String(row.default)}` : String(row.default ?? '');
  const known = value === '' || row.type === 'boolean' ? [] : [`default: ${value}`];
  return `${row.summary} [${[...known, `env: ${envOf(key, row)}`].join(', ')}]`;
}
