import * as Args from '@oclif/core/args';
import { Command } from '@oclif/core/command';
import * as Flags from '@oclif/core/flags';
import {
  resolveConfig,
  type ConfigOptions,
  type FlagValues,
  type Resolved,
} from '@gateway/core/config';
import type { GatewayClient } from '@gateway/client';
import { answerTable, type TextColumn } from '../output/table.js';
import { findIn, inEach, projectsOf, READS, showNewest, withApi } from './api.js';
import { idOf } from './flag-values.js';
import { installation } from './installation.js';
import { onEachShard, withDatabase, withShards } from './stores.js';

export { Args, findIn, Flags, idOf, inEach, projectsOf, READS, showNewest };
export { onEachShard, withDatabase, withShards };
export {
  parseDuration,
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

export const projectFlag = {
  'project-id': valueFlag('<id>', 'Only this project. [default: all projects]'),
};

/** Throws `wrong_use` if it is not an id. */
export const projectIdOf = (flags: { readonly 'project-id': string | undefined }) =>
  idOf('--project-id', flags['project-id']);

export const argument = (description: string) =>
  Args.string({ required: true, ignoreStdin: true, description });

export const optionalArgument = (description: string) =>
  Args.string({ ignoreStdin: true, description });

/** For commands that read settings from flags, environment variables and the configuration file. */
export abstract class GatewayCommand extends Command {
  /** Throws the errors of `resolveConfig`. */
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

  protected api<T>(flags: FlagValues, work: (api: GatewayClient) => Promise<T>): Promise<T> {
    return withApi(this.resolve(flags).config, work, (line) => this.logToStderr(line));
  }

  protected logTable<Item>(
    items: readonly Item[],
    { json }: { json: boolean },
    columns: readonly TextColumn<Item>[],
  ): void {
    this.log(answerTable(items, columns, { json }));
  }
}
