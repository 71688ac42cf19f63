import { summaries, topics, type CommandId } from './summaries.js';

/** Other names of commands. The command itself carries them as `hiddenAliases`. */
export const aliases: Readonly<Record<string, CommandId>> = { serve: 'server', s: 'server' };

const ids = Object.keys(summaries) as CommandId[];

/** The longest command or topic that the words begin with, `utils:quarantine` for example; empty when there is none. */
export function namedCommand(words: readonly string[]): string {
  const [first = ''] = words;
  if (Object.hasOwn(aliases, first)) return aliases[first]!;
  let named = '';
  for (const word of words) {
    const longer = named === '' ? word : `${named}:${word}`;
    if (!Object.hasOwn(summaries, longer) && !Object.hasOwn(topics, longer)) break;
    named = longer;
  }
  return named;
}

/**
 * The commands that a command line may be about: the one it names, and those below it, which its help lists; none when it names none. All of them for
 * `completion`, which tells of all, and when no word comes first.
 */
export function wantedCommands(argv: readonly string[]): readonly CommandId[] {
  const [first = '-', ...rest] = argv;
  if (first.startsWith('-') || first === 'completion') return ids;
  if (first === 'help') return ['help', ...atOrBelow(namedCommand(rest.filter((it) => !it.startsWith('-'))))];
  return atOrBelow(namedCommand(argv));
}

function atOrBelow(named: string): CommandId[] {
  return ids.filter((id) => id === named || (named !== '' && id.startsWith(`${named}:`)));
}

/** What may be typed after `gateway`, without the aliases, which nobody is to learn. */
export function commandNames(): string[] {
  return [...ids, ...Object.keys(topics)].map((id) => id.replaceAll(':', ' '));
}
