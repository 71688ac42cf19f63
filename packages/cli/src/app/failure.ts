import {
  didYouMean,
  GatewayError,
  isGatewayError,
  maskUrls,
  withoutSecrets,
} from '@gateway/core/errors';
import { commandNames, summaries, type NamedCommand } from './command-index.js';
import { wrongUse } from './flag-values.js';

interface CommandFailure {
  readonly sentence: string;
  readonly fix: string;
  readonly exitStatus: number;
}

/** oclif does not export the classes of its parser's errors. */
interface ParserError {
  readonly message: string;
  readonly oclif?: object;
  readonly flags?: readonly string[];
  readonly args?: readonly (string | { readonly name: string })[];
  readonly fix?: string;
}

/**
 * The exit status is 2 for a usage error, otherwise 1.
 *
 * @param command as typed, with spaces
 * @param flags the command's flags, without dashes
 */
export function failureOf(
  error: unknown,
  { command, flags }: { command: string; flags: readonly string[] },
): CommandFailure {
  if (isGatewayError(error))
    return { sentence: error.message, fix: error.fix, exitStatus: error.exitStatus };
  const {
    message = String(error),
    oclif,
    flags: unknownFlags,
    args,
    fix,
  } = (error ?? {}) as ParserError;
  if (oclif === undefined) {
    const internal = new GatewayError('internal', { reason: withoutSecrets(message) });
    return {
      sentence: fix === undefined ? internal.message : maskUrls(message),
      fix: fix ?? internal.fix,
      exitStatus: 1,
    };
  }
  const named = args?.map((arg) => (typeof arg === 'string' ? arg : `<${arg.name}>`)) ?? [];
  const unknown = unknownFlags?.map((flag) => {
    const name = flag.split('=', 1)[0]!;
    const known = flags.map((it) => `--${it}`);
    return `${name} is not a flag of gateway ${command}${didYouMean(name, known)}`;
  });
  const sentence = unknown
    ? unknown.join('\n')
    : message.startsWith('Unexpected argument')
      ? `${named.join(' ')} is not an argument of gateway ${command}`
      : named.length > 0
        ? `gateway ${command} needs ${named.join(' and ')}`
        : message.split('\n', 1)[0]!.replace(/^Flag (--\S+) expects a value$/, '$1 needs a value');
  return {
    sentence,
    fix: `run \`gateway ${command} --help\` for its flags and arguments`,
    exitStatus: 2,
  };
}

/** For standard error. */
export function printed({ sentence, fix }: CommandFailure): string {
  return maskUrls(`error: ${sentence.replaceAll('\n', '\n       ')}\nfix:   ${fix}\n`);
}

/**
 * Throws `wrong_use` for an unknown command or topic, a flag before the command, or words that the
 * command does not accept. Suggests a similar command, if any.
 */
export function requireCommand({ id, rest }: NamedCommand): void {
  const [next] = rest;
  const command = id.replaceAll(':', ' ');
  const isCommand = Object.hasOwn(summaries, id);
  const takesArguments =
    isCommand && !commandNames().some((name) => name.startsWith(`${command} `));
  if (takesArguments || (isCommand && next?.startsWith('-')) || (id !== '' && next === undefined))
    return;
  const named = `gateway ${command}`.trim();
  const fix =
    id === ''
      ? 'run `gateway` for the list of commands'
      : `run \`${named} --help\` for its commands`;
  if (next?.startsWith('-')) {
    const isBefore = rest.some((it) => commandNames().includes(`${command} ${it}`.trim()));
    throw isBefore
      ? wrongUse(
          `${next} is before the command, where only global flags are allowed`,
          'put the command first and its flags after it',
        )
      : wrongUse(`${named} needs a command`, fix);
  }
  const end = rest.findIndex((it) => it.startsWith('-'));
  const words = rest.slice(0, end === -1 ? undefined : end);
  // The last words can be arguments of a mistyped command, so fewer and fewer words are tried as
  // its name.
  for (let count = words.length; count > 0; count--) {
    const typed = `${command} ${words.slice(0, count).join(' ')}`.trim();
    const names = commandNames().filter((it) => it.split(' ').length === typed.split(' ').length);
    const hint = didYouMean(typed, names);
    if (hint) throw wrongUse(`there is no command ${typed}${hint}`, fix);
  }
  if (id === '') throw wrongUse(`there is no command ${words.join(' ')}`, fix);
  throw wrongUse(
    `${words.join(' ')} is not an argument of ${named}`,
    `run \`${named} --help\` for its flags and arguments`,
  );
}
