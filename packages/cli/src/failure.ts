import { GatewayError } from '@gateway/core/errors';
import { didYouMean } from '@gateway/core/suggest';

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
  if (unknownCommand) {
    if (command && unknownCommand.startsWith(`${command} `)) {
      return wrong(`${unknownCommand.slice(command.length + 1)} is not expected after gateway ${command}`);
    }
    return {
      sentence: `there is no command ${unknownCommand}${didYouMean(unknownCommand, commands)}`,
      fix: 'run `gateway` for the list of commands',
      exitStatus: 2,
    };
  }
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
