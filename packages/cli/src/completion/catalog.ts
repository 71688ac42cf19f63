import type { Command } from '@oclif/core/command';
import type { Config } from '@oclif/core/config';
import { flagsOf, type SettingsTable } from '@gateway/core/config';
import { aliases } from '../app/command-index.js';

/** A flag to complete. `values` is empty unless the possible values are few and known. */
export interface CompletedFlag {
  readonly name: string;
  readonly summary: string;
  readonly takesValue: boolean;
  readonly repeats: boolean;
  readonly values: readonly string[];
}

/** A command or topic to complete. For `migrate up`, `words` are `migrate` and `up`. */
export interface CompletedCommand {
  readonly words: readonly string[];
  readonly summary: string;
  readonly isTopic: boolean;
  readonly flags: readonly CompletedFlag[];
}

const HELP: CompletedFlag = {
  name: 'help',
  summary: 'Show help.',
  takesValue: false,
  repeats: false,
  values: [],
};

/** Returns all commands and topics with their flags, including plugin flags. */
export function catalogOf(config: Config, rows: SettingsTable): CompletedCommand[] {
  const commands = config.commands.filter(({ id }) => !Object.hasOwn(aliases, id));
  const ids = commands.map(({ id }) => id);
  const topics = config.topics.filter(
    ({ name }) => ids.some((id) => id.startsWith(`${name}:`)) && !ids.includes(name),
  );
  return [
    ...topics.map(({ name, description }) => ({
      words: name.split(':'),
      summary: description ?? '',
      isTopic: true,
      flags: [HELP],
    })),
    ...commands.map((command) => ({
      words: command.id.split(':'),
      summary: command.summary ?? '',
      isTopic: false,
      flags: [...completedFlags(command, rows), HELP],
    })),
  ];
}

function completedFlags({ id, flags }: Command.Loadable, rows: SettingsTable): CompletedFlag[] {
  return Object.values(flags)
    .filter(({ hidden }) => !hidden)
    .flatMap((flag): CompletedFlag[] => {
      const { name, summary = '' } = flag;
      if (flag.type === 'option') {
        return [
          {
            name,
            summary,
            takesValue: true,
            repeats: flag.multiple === true,
            values: valuesOf(flag, id, rows),
          },
        ];
      }
      const alone = { name, summary, takesValue: false, repeats: false, values: [] };
      return flag.allowNo ? [alone, { ...alone, name: `no-${name}` }] : [alone];
    });
}

/** Returns the options of the flag's setting, or the values in its help, such as `json|human`. */
function valuesOf(
  flag: Command.Flag.Cached & { type: 'option' },
  id: string,
  rows: SettingsTable,
): readonly string[] {
  const row = Object.values(rows).find(
    (it) => it.withdrawn === undefined && flagsOf(it, id).includes(flag.name),
  );
  if (row?.options) return row.options;
  const shown = typeof flag.helpValue === 'string' ? flag.helpValue : '';
  return /^[\w.-]+(\|[\w.-]+)+$/.test(shown) ? shown.split('|') : [];
}
