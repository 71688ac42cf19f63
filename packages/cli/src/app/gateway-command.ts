import * as Args from '@oclif/core/args';
import { Command } from '@oclif/core/command';
import * as Flags from '@oclif/core/flags';
import {
  resolveConfig,
  type ConfigOptions,
  type FlagValues,
  type Resolved,
} from '@gateway/core/config';
import type { Database } from '@gateway/store/postgres';
import { answerTable, type TextColumn } from '../output/table.js';
import { onEachShard, withDatabase, withShards, type DatabaseWork } from './stores.js';
import { installation } from './installation.js';

export { Args, Flags, onEachShard, withDatabase, withShards };
export {
  parseDuration,
  idOf,
  integerOf,
  oneOf,
  readInput,
  readPassword,
  timeOf,
  wrongUse,
} from './flag-values.js';

export const jsonFlag = { json: Flags.boolean({ summary: 'Print JSON instead of a table.' }) };

export const valueFlag = (helpValue: string, summary: string) =>
  Flags.string({ helpValue, summary });

export const argument = (description: string) =>
  Args.string({ required: true, ignoreStdin: true, description });

export const optionalArgument = (description: string) =>
  Args.string({ ignoreStdin: true, description });

/**
 * The base of commands that read settings from flags, environment variables and the configuration
 * file.
 */
export abstract class GatewayCommand extends Command {
  /** Resolves the settings for this command. Throws the errors of `resolveConfig`. */
  protected resolve(flags: FlagValues): Resolved {
    return resolveConfig(this.configOptions(flags));
  }

  protected configOptions(flags: FlagValues): ConfigOptions {
    const file = flags['config'];
    return {
      command: this.ctor.id,
      flags,
      file: typeof file === 'string' ? file : undefined,
      rows: installation().rows,
    };
  }

  protected withDatabase<T>(
    flags: FlagValues,
    work: (database: Database) => Promise<T>,
    options?: DatabaseWork,
  ): Promise<T> {
    return withDatabase(this.resolve(flags).config, work, options);
  }

  protected logTable<Item>(
    items: readonly Item[],
    { json }: { json: boolean },
    columns: readonly TextColumn<Item>[],
  ): void {
    this.log(answerTable(items, columns, { json }));
  }
}
