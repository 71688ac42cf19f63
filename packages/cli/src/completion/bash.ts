import type { CompletedCommand } from './catalog.js';

/**
 * Returns an addition to the generated bash script, which itself completes only command words and
 * the first flag. The addition passes the line to that script without the preceding flags and
 * values, completes flag values itself, and leaves the rest to file completion.
 */
export function bashAddition(catalog: readonly CompletedCommand[]): string {
  const withValue = new Set(
    catalog.flatMap(({ flags }) =>
      flags.filter((it) => it.takesValue).map(({ name }) => `--${name}`),
    ),
  );
  return `
_gateway_complete()
{
  local cur="\${COMP_WORDS[COMP_CWORD]}" word flag="" id="" args="" values="" i IFS=$' \\t\\n'
  local -a command=("\${COMP_WORDS[0]}")
  local ids=" ${catalog.map(({ words }) => words.join(':')).join(' ')} "

  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    # Bash makes three words of --mode=events. What follows help is a command like any.
    if [[ "$word" == "=" || ( "$word" == "help" && -z "$id" ) ]]; then
      continue
    elif [[ -n "$flag" ]]; then
      flag=""
    elif [[ "$word" == -* ]]; then
      case "$word" in
        ${[...withValue].join('|')}) flag="$word" ;;
      esac
    elif [[ -z "$args" && "$ids" == *" \${id:+$id:}$word "* ]]; then
      id="\${id:+$id:}$word"
      command+=("$word")
    else
      args="yes"
    fi
  done

  COMPREPLY=()
  if [[ -n "$flag" ]]; then
    [[ "$cur" == "=" ]] && cur=""
    case "$id $flag" in
${valueCases(catalog).join('\n')}
    esac
    COMPREPLY=($(compgen -W "$values" -- "$cur"))
  elif [[ -z "$args" || "$cur" == -* ]]; then
    local -a COMP_WORDS=("\${command[@]}" "$cur")
    local COMP_CWORD=$((\${#command[@]}))
    _gateway_autocomplete
  fi
}

complete -o default -F _gateway_complete gateway
`;
}

/** Returns one branch of the bash `case` statement per set of values. */
function valueCases(catalog: readonly CompletedCommand[]): string[] {
  const cases = new Map<string, string[]>();
  for (const { words, flags } of catalog) {
    for (const { name, values } of flags.filter((it) => it.values.length > 0)) {
      const set = values.join(' ');
      cases.set(set, [...(cases.get(set) ?? []), `"${words.join(':')} --${name}"`]);
    }
  }
  return [...cases].map(([set, places]) => `      ${places.join('|')}) values="${set}" ;;`);
}
