import { Command } from '@oclif/core/command';
import * as Flags from '@oclif/core/flags';
import { resolveConfig, type ConfigOptions, type FlagValues, type Resolved } from '@gateway/core/config';
import { installation } from './installation.js';

/** The flag of commands that print a table. */
export const jsonFlag = { json: Flags.boolean({ summary: 'Print JSON in place of a table.' }) };

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
}
