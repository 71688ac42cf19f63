import { GatewayError } from '@gateway/core/errors';
import { didYouMean } from '@gateway/core/errors';

export interface Failure {
  readonly sentence: string;
  readonly fix: string;
  readonly exitStatus: number;
}

/** What the failures of the command line parser carry; the parser does not export their classes. */
interface ParserError {
  readonly message: string;
  readonly oclif?: object;
  readonly flags?: readonly string[];
  readonly args?: readonly (string | { readonly name: string })[];
  readonly fix?: string;
}

/**
 * Any error of a command as a sentence, a fix and an exit status: 2 when the command was used wrongly, 1 for everything else.
 *
 * @param command the command as it was typed, with spaces
 */
export function failureOf(
  error: unknown,
  { command, flags, commands }: { command: string; flags: readonly string[]; commands: readonly string[] },
): Failure {
  if (error instanceof GatewayError) return { sentence: error.message, fix: error.fix, exitStatus: error.exitStatus };
  const { message = String(error), oclif, flags: unknownFlags, args, fix } = (error ?? {}) as ParserError;
  const help = command ? `run \`gateway ${command} --help\` for its flags and arguments` : 'run `gateway` for the list of commands';
  const wrong = (sentence: string): Failure => ({ sentence, fix: help, exitStatus: 2 });

  const unknownCommand = /^command (.+) not found\.?$/i.exec(message)?.[1]?.replaceAll(':', ' ');
  if (unknownCommand)
    return (
      unknown(unknownCommand, command, commands) ??
      wrong(`${unknownCommand.slice(command.length + 1)} is not expected after gateway ${command}`)
    );
  if (oclif === undefined) {
    return fix === undefined ? { ...internal(message), exitStatus: 1 } : { sentence: message, fix, exitStatus: 1 };
  }
  if (unknownFlags) {
    return wrong(unknownFlags.map((flag) => unknownFlag(flag, command, flags)).join('\n'));
  }
  const named = args?.map((arg) => (typeof arg === 'string' ? arg : `<${arg.name}>`)) ?? [];
  if (message.startsWith('Unexpected argument')) return wrong(`${named.join(' ')} is not expected after gateway ${command}`);
  if (named.length > 0) return wrong(`gateway ${command} needs ${named.join(' and ')}`);
  return wrong(firstLine(message));
}

/** Words that are no command; undefined when they are likely arguments of one that takes none. */
function unknown(words: string, command: string, commands: readonly string[]): Failure | undefined {
  const isBelow = command !== '' && words.startsWith(`${command} `);
  const list = isBelow ? `run \`gateway ${command} --help\` for its commands` : 'run `gateway` for the list of commands';
  if (words.startsWith('-')) {
    const [flag] = words.split(' ', 1);
    return { sentence: `${flag} stands before the command`, fix: 'put the command first and its flags after it', exitStatus: 2 };
  }
  const { typed, hint } = nearestCommand(words, commands);
  if (hint === '' && isBelow) return undefined;
  return { sentence: `there is no command ${typed}${hint}`, fix: list, exitStatus: 2 };
}

/** The command that was likely meant. What follows a mistyped command may be its arguments, so fewer and fewer words are compared. */
function nearestCommand(words: string, commands: readonly string[]): { typed: string; hint: string } {
  const all = words.split(' ');
  for (let count = all.length; count > 0; count--) {
    const typed = all.slice(0, count).join(' ');
    if (commands.includes(typed)) break;
    const hint = didYouMean(
      typed,
      commands.filter((it) => it.split(' ').length === count),
    );
    if (hint) return { typed, hint };
  }
  return { typed: words, hint: '' };
}

function unknownFlag(given: string, command: string, flags: readonly string[]): string {
  const name = given.split('=', 1)[0]!;
  return `${name} is not a flag of gateway ${command}${didYouMean(
    name,
    flags.map((flag) => `--${flag}`),
  )}`;
}

/** `Flag --port expects a value` and the like, as a sentence of ours. */
function firstLine(message: string): string {
  const [line = ''] = message.split('\n');
  return line.replace(/^Flag (--\S+) expects (?:a value|one of these values: (.+))$/, (_, flag: string, options?: string) =>
    options ? `${flag} needs one of ${options}` : `${flag} needs a value`,
  );
}

function internal(reason: string): { sentence: string; fix: string } {
  const error = new GatewayError('internal', { reason });
  return { sentence: error.message, fix: error.fix };
}

/** The lines that a person sees on standard error. */
export function printed({ sentence, fix }: Failure): string {
  return `error: ${sentence.replaceAll('\n', '\n       ')}\nfix:   ${fix}\n`;
}
