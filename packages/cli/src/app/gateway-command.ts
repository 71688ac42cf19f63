import * as Args from '@oclif/core/args';
import { Command } from '@oclif/core/command';
import * as Flags from '@oclif/core/flags';
import type {
  ArgInput,
  Config as OclifConfig,
  FlagInput,
  OptionFlag,
} from '@oclif/core/interfaces';
import {
  resolveConfig,
  type Config,
  type ConfigOptions,
  type FlagValues,
  type Resolved,
} from '@gateway/core/config';
import type { GatewayClient } from '@gateway/client';
import { answerTable, type TextColumn } from '../output/table.js';
import { findIn, inEach, projectsOf, READS, showNewest, withApi } from './api.js';
import { idOf, oneOf, parseDuration } from './flag-values.js';
import { installation } from './installation.js';
import { onEachShard, withDatabase, withShards } from './stores.js';

export { Args, findIn, Flags, idOf, inEach, projectsOf, READS, showNewest };
export { onEachShard, withDatabase, withShards };
export {
  integerOf,
  oneOf,
  parseDuration,
  readInput,
  readPassword,
  timeOf,
  wrongUse,
} from './flag-values.js';

/** Reads the value of a flag, or undefined if it was omitted. Throws `wrong_use`. */
type ReadFlag<Value> = (name: string, given: string | undefined) => Value;

export const valueFlag = (helpValue: string, summary: string) =>
  Flags.string({ helpValue, summary });

/** `read` runs outside of the parser, which would rewrite its errors. */
export const readFlag = <Value>(helpValue: string, summary: string, read: ReadFlag<Value>) =>
  ({ ...valueFlag(helpValue, summary), read }) as unknown as OptionFlag<Value>;

export const switchFlag = (summary: string) => Flags.boolean({ summary });

export const listFlag = (helpValue: string, summary: string) =>
  Flags.string({ multiple: true, multipleNonGreedy: true, helpValue, summary });

export const idFlag = (summary: string) =>
  readFlag<string | undefined>('<id>', summary, (name, given) => idOf(name, given));

export const durationFlag = (summary: string) =>
  readFlag('<duration>', summary, (name, given) =>
    given === undefined ? undefined : parseDuration(name, given),
  );

export const wordFlag = <const Known extends string>(
  helpValue: string,
  summary: string,
  known: readonly Known[],
) => readFlag(helpValue, summary, (name, given) => oneOf(name, given, known));

const json = (instead: string) => ({
  json: switchFlag(`Print JSON instead of ${instead}.`),
});
export const jsonFlag = json('a table');
export const jsonOrText = json('text');

export const projectFlag = { 'project-id': idFlag('Only this project. [default: all projects]') };

export const argument = (description: string) =>
  Args.string({ required: true, ignoreStdin: true, description });

export const optionalArgument = (description: string) =>
  Args.string({ ignoreStdin: true, description });

/** An argument named `id`. */
export const idArgument = (description: string) => ({
  id: Args.string({
    required: true,
    ignoreStdin: true,
    description,
    parse: (given: string) => Promise.resolve(idOf('the argument', given)),
  }),
});

type FlagRecord = Record<string, unknown>;

/** A call of a command: the values it was given, and ways to answer. */
export interface Invocation<Given = FlagRecord, Words = FlagRecord> {
  readonly flags: Given;
  readonly args: Words;
  /** All arguments, of a command that is not `strict`. */
  readonly argv: readonly string[];
  readonly oclif: OclifConfig;
  /** Prints a result. */
  log(text: string): void;
  /** Prints anything else, to standard error. */
  note(text: string): void;
  json(value: unknown): void;
  /** Prints JSON with --json, else the text. */
  show(value: unknown, text: () => string): void;
  /** Prints JSON with --json, else a table. */
  table<Item>(items: readonly Item[], columns: readonly TextColumn<Item>[]): void;
  readonly options: () => ConfigOptions;
  /** Throws the errors of `resolveConfig`. */
  readonly resolve: () => Resolved;
  readonly config: () => Config;
  readonly api: <T>(work: (api: GatewayClient) => Promise<T>) => Promise<T>;
  /** Ends the command. */
  exit(status: number): never;
}

interface Definition<Given extends FlagRecord, Words extends FlagRecord> {
  readonly description: string;
  readonly examples: Command.Example[];
  readonly flags?: FlagInput<Given>;
  readonly args?: ArgInput<Words>;
  /** Flags of settings. By default, of all that affect the command. */
  readonly baseFlags?: FlagInput;
  /** False if there may be any number of arguments. */
  readonly strict?: false;
  readonly hiddenAliases?: string[];
  readonly run: (it: Invocation<Given, Words>) => Promise<void> | void;
}

/** For commands that read settings from flags, environment variables and the configuration file. */
export abstract class GatewayCommand extends Command {
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
}

/** A command as the class that oclif expects. */
export function command<Given extends FlagRecord = {}, Words extends FlagRecord = {}>({
  run,
  ...statics
}: Definition<Given, Words>): Command.Class {
  class Made extends GatewayCommand {
    async run(): Promise<void> {
      const { flags: given, args, argv } = await this.parse<Given, FlagValues, Words>();
      const flags: FlagRecord = { ...given };
      for (const [name, flag] of Object.entries(statics.flags ?? {})) {
        const { read } = flag as { readonly read?: ReadFlag<unknown> };
        if (read) flags[name] = read(`--${name}`, given[name] as string | undefined);
      }
      const isJson = given.json === true;
      const log = (text: string) => this.log(text);
      const note = (text: string) => this.logToStderr(text);
      const resolve = () => this.resolve(given);
      const it: Invocation<Given, Words> = {
        flags: flags as Given,
        args,
        argv: argv as string[],
        oclif: this.config,
        log,
        note,
        resolve,
        json: (value) => log(JSON.stringify(value, null, 2)),
        show: (value, text) => (isJson ? it.json(value) : log(text())),
        table: (items, columns) => log(answerTable(items, columns, { json: isJson })),
        options: () => this.configOptions(given),
        config: () => resolve().config,
        api: (work) => withApi(resolve().config, work, note),
        exit: (status) => this.exit(status),
      };
      await run(it);
    }
  }
  return Object.assign(Made, statics);
}
