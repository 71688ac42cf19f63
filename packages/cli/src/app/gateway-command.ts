import * as Args from '@oclif/core/args';
import { Command } from '@oclif/core/command';
import * as Flags from '@oclif/core/flags';
import { resolveConfig, type ConfigOptions, type FlagValues, type Resolved } from '@gateway/core/config';
import type { Database } from '@gateway/store/postgres';
import { answerTable, type Column } from '../output/table.js';
import { withDatabase, type DatabaseOptions } from './stores.js';
import { installation } from './installation.js';

// What nearly every command needs.
export { Args, Flags, withDatabase };
export { parseDuration, idOf, integerOf, oneOf, readInput, wrongUse } from './flag-values.js';

/** The flag of commands that print a table. */
export const jsonFlag = { json: Flags.boolean({ summary: 'Print JSON instead of a table.' }) };

/** A flag with a value. */
export const valueFlag = (helpValue: string, summary: string) => Flags.string({ helpValue, summary });

/** An argument that must be given. */
export const argument = (description: string) => Args.string({ required: true, ignoreStdin: true, description });

/** A command that reads settings from its flags, the environment and the configuration file. */
export abstract class GatewayCommand extends Command {
  /** The settings of this command. Throws the errors of `resolveConfig`. */
  protected resolve(flags: FlagValues): Resolved {
    return resolveConfig(this.configOptions(flags));
  }

  /** Where the settings of this command are read. */
  protected configOptions(flags: FlagValues): ConfigOptions {
    const file = flags['config'];
    return { command: this.ctor.id, flags, file: typeof file === 'string' ? file : undefined, rows: installation().rows };
  }

  /** As the function of this name, with the database of the settings. */
  protected withDatabase<T>(flags: FlagValues, work: (database: Database) => Promise<T>, options?: DatabaseOptions): Promise<T> {
    return withDatabase(this.resolve(flags).config, work, options);
  }

  protected logTable<Item>(items: readonly Item[], { json }: { json: boolean }, columns: readonly Column<Item>[]): void {
    this.log(answerTable(items, columns, { json }));
  }
}
