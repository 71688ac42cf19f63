import type { CompletedCommand, CompletedFlag } from './catalog.js';

/** Returns the completion script for fish: https://fishshell.com/docs/current/completions.html */
export function fishScript(catalog: readonly CompletedCommand[]): string {
  return `# Completions of gateway for fish.

# The command on the line, its words joined by colons; empty before there is one. What follows help is a command like any.
function __gateway_command
    set -l known ${catalog.map(({ words }) => words.join(':')).join(' ')}
    set -l words (commandline -opc)
    set -l id
    for word in $words[2..]
        if test "$word" = help; and test -z "$id"
            continue
        end
        set -l longer (string join -- : $id $word)
        contains -- $longer $known
        or break
        set id $longer
    end
    echo $id
end

# Whether the command on the line is one of these.
function __gateway_at
    contains -- (__gateway_command) $argv
end

# A word after the command, where none of its commands follows, may be a file; nothing else is.
complete -c gateway -f
${[...words(catalog), ...flags(catalog)].join('\n')}
`;
}

function words(catalog: readonly CompletedCommand[]): string[] {
  return catalog.map(({ words, summary }) => {
    const before = words.slice(0, -1).join(':') || "''";
    return `complete -c gateway -n "__gateway_at ${before}" -a ${words.at(-1)} -d ${quoted(summary)}`;
  });
}

/** Returns one line per flag, for all commands that have it. */
function flags(catalog: readonly CompletedCommand[]): string[] {
  const places = new Map<string, string[]>();
  for (const { words, flags } of catalog) {
    for (const flag of flags) {
      const line = flagLine(flag);
      places.set(line, [...(places.get(line) ?? []), words.join(':')]);
    }
  }
  return [...places].map(
    ([line, ids]) => `complete -c gateway -n "__gateway_at ${ids.join(' ')}" ${line}`,
  );
}

function flagLine({ name, summary, takesValue, values }: CompletedFlag): string {
  const value = !takesValue
    ? ''
    : values.length > 0
      ? ` -x -a ${quoted(values.join(' '))}`
      : ' -r -F';
  return `-l ${name}${value} -d ${quoted(summary)}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
